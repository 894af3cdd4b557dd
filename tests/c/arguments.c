/*
 * Good arguments accepted, bad ones refused, by every function of spikelet.h. Run under the address
 * and undefined-behaviour sanitizers and under valgrind; counts as it goes.
 */
#include "expect.h"
#include "model.h"
#include "spikelet.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int16_t integers[MODEL_DIMS];

static void bad_blobs(unsigned char *memory, size_t size)
{
    /* Every byte of the blob changed in turn: refused, or still a model. Every length: refused. */
    unsigned char *copy = malloc(sizeof model_blob);
    spk_state *state;
    spk_info info;
    size_t i;
    int accepted = 0;

    for (i = 0; i < sizeof model_blob; i++) {
        memcpy(copy, model_blob, sizeof model_blob);
        copy[i] ^= 0x5a;
        accepted += spk_init(memory, size, copy, sizeof model_blob, &state) == SPK_OK;
    }
    /* The two bytes of the format revision are not checked: newer revisions stay readable. */
    EXPECT(accepted == 2);
    memcpy(copy, model_blob, sizeof model_blob);
    for (i = 0; i < sizeof model_blob; i++) {
        unsigned char *cut = malloc(i ? i : 1); /* malloc aligns, and a sanitizer sees reads past the end */
        memcpy(cut, model_blob, i);
        accepted += spk_inspect(cut, i, &info) == SPK_OK;
        accepted += spk_state_size(cut, i) != 0;
        free(cut);
    }
    EXPECT(accepted == 2);
    free(copy);
}

/* Every setting in turn that the sampler cannot run with, and that a sample can be drawn again. */
static void sampling(void)
{
    const size_t size = spk_gibbs_state_size(model_blob, sizeof model_blob);
    unsigned char *memory = malloc(size);
    float *sample = calloc(MODEL_DIMS, sizeof *sample);
    spk_state *state = NULL;
    spk_estimate estimate;
    spk_gibbs good, bad;
    float first[MODEL_LATENTS];
    uint32_t i;

    EXPECT(size > 0 && spk_gibbs_state_size(NULL, 100) == 0);
    EXPECT(spk_gibbs_settings(NULL, sizeof model_blob, 40, &good) == SPK_ERR_NULL);
    EXPECT(spk_gibbs_settings(model_blob, sizeof model_blob, 40, NULL) == SPK_ERR_NULL);
    EXPECT(spk_gibbs_settings(model_blob, sizeof model_blob, 40, &good) == SPK_OK);
    EXPECT(good.sweeps == 40 && good.burn_in == 20 && good.chains == 1 && good.start == SPK_START_GREEDY);

#define REFUSED(field, value)                                                                             \
    bad = good;                                                                                           \
    bad.field = value;                                                                                    \
    EXPECT(spk_init_gibbs(memory, size, model_blob, sizeof model_blob, &bad, &state) == SPK_ERR_SETTING); \
    EXPECT(state == NULL)
    REFUSED(sweeps, 0);
    REFUSED(burn_in, 40);
    REFUSED(burn_in, UINT32_MAX);
    REFUSED(thinning, 0);
    REFUSED(chains, 0);
    REFUSED(start, 3);
    REFUSED(extra, MODEL_SELECTED);
    REFUSED(extra, UINT32_MAX);
    REFUSED(max_active, 0);
    REFUSED(max_active, UINT32_MAX);
#undef REFUSED
    EXPECT(spk_init_gibbs(memory, size, model_blob, sizeof model_blob, NULL, &state) == SPK_ERR_NULL);
    EXPECT(spk_init_gibbs(NULL, size, model_blob, sizeof model_blob, &good, &state) == SPK_ERR_NULL);
    EXPECT(spk_init_gibbs(memory, size, NULL, sizeof model_blob, &good, &state) == SPK_ERR_NULL);
    EXPECT(spk_init_gibbs(memory, size, model_blob, sizeof model_blob, &good, NULL) == SPK_ERR_NULL);
    EXPECT(spk_init_gibbs(memory, size - 1, model_blob, sizeof model_blob, &good, &state) == SPK_ERR_MEMORY);
    EXPECT(spk_init_gibbs(memory + 1, size - 1, model_blob, sizeof model_blob, &good, &state) == SPK_ERR_ALIGNMENT);
    EXPECT(spk_init_gibbs(memory, size, model_blob, sizeof model_blob, &good, &state) == SPK_OK);

    sample[0] = NAN;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_ERR_NOT_FINITE);
    sample[0] = 3e38f;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_ERR_RANGE);
    for (i = 0; i < MODEL_DIMS; i++)
        sample[i] = 0.02f; /* two standard deviations of the noise: nothing is certain */
    EXPECT(spk_seek(NULL, 7) == SPK_ERR_NULL);
    EXPECT(spk_seek(state, 7) == SPK_OK);
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_OK && isfinite(estimate.evidence));
    memcpy(first, estimate.mean, sizeof first);
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_OK);
    EXPECT(memcmp(first, estimate.mean, sizeof first) != 0);
    EXPECT(spk_seek(state, 7) == SPK_OK);
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_OK);
    EXPECT(memcmp(first, estimate.mean, sizeof first) == 0);
    free(memory);
    free(sample);
}

int main(void)
{
    const size_t size = spk_state_size(model_blob, sizeof model_blob);
    unsigned char *memory = malloc(size), *other = malloc(size);
    const void *blob = model_blob;
    float *sample = calloc(MODEL_DIMS + 1, sizeof *sample);
    float *out = calloc(MODEL_DIMS, sizeof *out);
    spk_state *state = NULL, *second = NULL;
    spk_estimate estimate, again;
    spk_info info;
    uint32_t i;
    float first;

    EXPECT(spk_api_version() == SPK_API_VERSION);
    EXPECT(spk_blob_version() == SPK_BLOB_VERSION);
    EXPECT(size == MODEL_STATE_SIZE);
    EXPECT(MODEL_STATE_ALIGN == SPK_STATE_ALIGN);
    EXPECT(spk_state_size(NULL, 100) == 0);

    EXPECT(spk_inspect(blob, sizeof model_blob, &info) == SPK_OK);
    EXPECT(info.dims == MODEL_DIMS && info.latents == MODEL_LATENTS && info.selected == MODEL_SELECTED);
    EXPECT(info.max_active == MODEL_MAX_ACTIVE && info.states == MODEL_STATES && info.state_size == size);
    EXPECT(spk_inspect(NULL, sizeof model_blob, &info) == SPK_ERR_NULL);
    EXPECT(spk_inspect(blob, sizeof model_blob, NULL) == SPK_ERR_NULL);
    EXPECT(spk_inspect(blob, (size_t)-1, &info) == SPK_ERR_LENGTH);

    EXPECT(spk_init(NULL, size, blob, sizeof model_blob, &state) == SPK_ERR_NULL);
    EXPECT(spk_init(memory, size, NULL, sizeof model_blob, &state) == SPK_ERR_NULL);
    EXPECT(spk_init(memory, size, blob, sizeof model_blob, NULL) == SPK_ERR_NULL);
    EXPECT(spk_init(memory + 1, size - 1, blob, sizeof model_blob, &state) == SPK_ERR_ALIGNMENT);
    EXPECT(spk_init(memory, size - 1, blob, sizeof model_blob, &state) == SPK_ERR_MEMORY);
    EXPECT(spk_init(memory, size, model_blob + 8, sizeof model_blob - 8, &state) == SPK_ERR_BLOB_MAGIC);
    EXPECT(spk_init(memory, size, model_blob + 1, sizeof model_blob - 1, &state) == SPK_ERR_ALIGNMENT);
    EXPECT(state == NULL);
    EXPECT(spk_init(memory, size, blob, sizeof model_blob, &state) == SPK_OK);

    EXPECT(spk_process(NULL, sample, MODEL_DIMS, &estimate) == SPK_ERR_NULL);
    EXPECT(spk_process(state, NULL, MODEL_DIMS, &estimate) == SPK_ERR_NULL);
    EXPECT(spk_process(state, sample, MODEL_DIMS, NULL) == SPK_ERR_NULL);
    EXPECT(spk_process(state, sample, MODEL_DIMS - 1, &estimate) == SPK_ERR_LENGTH);
    EXPECT(spk_process(state, sample, MODEL_DIMS + 1, &estimate) == SPK_ERR_LENGTH);
    EXPECT(spk_process_i16(NULL, integers, MODEL_DIMS, 0.5f, &estimate) == SPK_ERR_NULL);
    EXPECT(spk_process_i16(state, NULL, MODEL_DIMS, 0.5f, &estimate) == SPK_ERR_NULL);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, 0.5f, NULL) == SPK_ERR_NULL);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS - 1, 0.5f, &estimate) == SPK_ERR_LENGTH);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, 0.0f, &estimate) == SPK_ERR_SETTING);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, (float)NAN, &estimate) == SPK_ERR_SETTING);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, -1.0f, &estimate) == SPK_ERR_SETTING);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, 1e38f, &estimate) == SPK_ERR_SETTING);
    EXPECT(spk_process_i16(state, integers, MODEL_DIMS, 1.0f / 32768, &estimate) == SPK_OK);
    EXPECT(spk_process(state, sample, (size_t)-1, &estimate) == SPK_ERR_LENGTH);
    EXPECT(spk_process(state, (const float *)(const void *)((const char *)sample + 1), MODEL_DIMS, &estimate) == SPK_ERR_ALIGNMENT);
    memset(other, 0, size);
    EXPECT(spk_process((spk_state *)(void *)other, sample, MODEL_DIMS, &estimate) == SPK_ERR_STATE);
    EXPECT(spk_reset((spk_state *)(void *)other) == SPK_ERR_STATE);
    sample[0] = NAN;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_ERR_NOT_FINITE);
    sample[0] = -INFINITY;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_ERR_NOT_FINITE);
    sample[0] = 3e38f;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_ERR_RANGE);
    sample[0] = 0.5f;
    EXPECT(spk_process(state, sample, MODEL_DIMS, &estimate) == SPK_OK);
    EXPECT(estimate.latents == MODEL_LATENTS && estimate.selected_len == MODEL_SELECTED);
    EXPECT(estimate.map_len <= MODEL_MAX_ACTIVE && isfinite(estimate.evidence));
    for (i = 0; i < estimate.latents; i++)
        EXPECT(estimate.activity[i] >= 0 && estimate.activity[i] <= 1.00001f && estimate.variance[i] >= 0);
    for (i = 0; i < estimate.selected_len; i++)
        EXPECT(estimate.selected[i] < MODEL_LATENTS);

    EXPECT(spk_reconstruct(NULL, out, MODEL_DIMS) == SPK_ERR_NULL);
    EXPECT(spk_reconstruct(state, NULL, MODEL_DIMS) == SPK_ERR_NULL);
    EXPECT(spk_reconstruct(state, out, MODEL_DIMS + 1) == SPK_ERR_LENGTH);
    EXPECT(spk_reconstruct(state, out, MODEL_DIMS) == SPK_OK);

    /* Two streams on one blob do not see each other; a state can be copied. */
    first = estimate.mean[0];
    EXPECT(spk_init(other, size, blob, sizeof model_blob, &second) == SPK_OK);
    sample[0] = -7.0f;
    EXPECT(spk_process(second, sample, MODEL_DIMS, &again) == SPK_OK);
    EXPECT(estimate.mean[0] == first);
    memcpy(other, memory, size);
    sample[0] = 0.5f;
    EXPECT(spk_process(second, sample, MODEL_DIMS, &again) == SPK_OK);
    EXPECT(again.mean[0] == first && again.evidence == estimate.evidence);

    EXPECT(spk_reset(NULL) == SPK_ERR_NULL);
    EXPECT(spk_reset(state) == SPK_OK);
    EXPECT(spk_process(state, sample, MODEL_DIMS, &again) == SPK_OK && again.mean[0] == first);

    EXPECT(strcmp(spk_status_str(SPK_OK), "done") == 0);
    EXPECT(strlen(spk_status_str(SPK_ERR_RANGE)) > 0 && strlen(spk_status_str(12345)) > 0);

    bad_blobs(memory, size);
    sampling();
    free(memory);
    free(other);
    free(sample);
    free(out);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
