/*
 * The desktop twin of main.c: the same calls on the same model, the digest to compare with.
 *
 *   desktop model.spk samples.f32 [sweeps]
 */
#include <stdio.h>
#include <stdlib.h>

#include "digest.h"

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(spk_status status, const char *what)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

/* A whole file; malloc aligns it well enough for the blob and for floats. */
static void *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    long size;
    void *bytes;

    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0 || fseek(file, 0, SEEK_SET))
        fail(path, "cannot read");
    bytes = malloc((size_t)size);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        fail(path, "cannot read");
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

int main(int argc, char **argv)
{
    size_t blob_len, samples_len;
    uint64_t digest = DIGEST_START;
    spk_info info;
    spk_state *state;

    if (argc != 3 && argc != 4)
        fail("usage", "desktop model.spk samples.f32 [sweeps]");

    const void *blob = read_file(argv[1], &blob_len);
    const float *samples = read_file(argv[2], &samples_len);
    must(spk_inspect(blob, blob_len, &info), argv[1]);

    const uint32_t sweeps = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    if (sweeps > 0)
        info.state_size = spk_gibbs_state_size(blob, blob_len);

    const size_t count = samples_len / sizeof *samples / info.dims;
    void *memory = malloc(info.state_size);
    float *reconstruction = malloc(info.dims * sizeof *reconstruction);
    if (!memory || !reconstruction)
        fail("malloc", "no memory");
    if (sweeps > 0) {
        spk_gibbs settings;

        must(spk_gibbs_settings(blob, blob_len, sweeps, &settings), "spk_gibbs_settings");
        settings.chains = 2;
        settings.extra = 1;
        settings.seed = 1;
        must(spk_init_gibbs(memory, info.state_size, blob, blob_len, &settings, &state), "spk_init_gibbs");
    } else {
        must(spk_init(memory, info.state_size, blob, blob_len, &state), "spk_init");
    }

    for (size_t n = 0; n < count; n++) {
        spk_estimate estimate;

        must(spk_process(state, &samples[n * info.dims], info.dims, &estimate), "spk_process");
        digest = digest_estimate(digest, &estimate);
        must(spk_reconstruct(state, reconstruction, info.dims), "spk_reconstruct");
        digest = digest_bytes(digest, reconstruction, info.dims * sizeof *reconstruction);
    }
    printf("%s digest=%016llx samples=%zu arena=%zu\n", argv[1], (unsigned long long)digest, count, info.state_size);
    return 0;
}
