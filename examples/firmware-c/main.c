/*
 * Spikelet on bare metal: a trained model in flash, one block of static memory, a loop over samples.
 *
 *   blob (flash) --spk_init--> state (RAM) --spk_process, once a sample--> estimate
 *
 * The samples lie in flash too, where a product would have an ADC. What the run prints is a digest of
 * every output bit, which desktop.c prints as well: the two must agree.
 */
#include <stdint.h>

#include "board.h"
#include "digest.h"
#include "model.h"
#include "must.h"
#include "spikelet.h"

/* The only memory the library gets. spk_info.state_size tells how much of it a model needs; uint64_t gives
 * the alignment that SPK_STATE_ALIGN asks for. */
static uint64_t memory[MEMORY_BYTES / sizeof(uint64_t)];

/* Too large for the stack of a small part. */
static float reconstruction[MODEL_DIMS];

int main(void)
{
    const uint32_t samples = model_samples_size / (MODEL_DIMS * sizeof(float));
    uint64_t digest = DIGEST_START;
    spk_info info;
    spk_state *state;

    must(spk_inspect(model_blob, model_blob_size, &info), "spk_inspect");
#if MODEL_SWEEPS > 0
    /* Many sources on at once: draws from the posterior instead of a sum over all states. */
    spk_gibbs settings;

    must(spk_gibbs_settings(model_blob, model_blob_size, MODEL_SWEEPS, &settings), "spk_gibbs_settings");
    settings.chains = 2;
    settings.extra = 1;
    settings.seed = 1;
    must(spk_init_gibbs(memory, sizeof memory, model_blob, model_blob_size, &settings, &state), "spk_init_gibbs");
    info.state_size = spk_gibbs_state_size(model_blob, model_blob_size);
#else
    must(spk_init(memory, sizeof memory, model_blob, model_blob_size, &state), "spk_init");
#endif

    for (uint32_t n = 0; n < samples; n++) {
        spk_estimate estimate;

        must(spk_process(state, &model_samples[n * MODEL_DIMS], MODEL_DIMS, &estimate), "spk_process");
        digest = digest_estimate(digest, &estimate);
        must(spk_reconstruct(state, reconstruction, MODEL_DIMS), "spk_reconstruct");
        digest = digest_bytes(digest, reconstruction, sizeof reconstruction);
    }

    print(MODEL_NAME " digest=");
    print_hex(digest);
    print_value(" samples=", samples);
    print_value(" stack=", board_stack_used());
    print_value(" arena=", (uint32_t)info.state_size);
    print("\n");
    return 0;
}
