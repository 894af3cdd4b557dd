/*
 * Sources from samples, on a desktop: numbers come in on standard input, MODEL_DIMS a sample; for
 * every sample a line goes out with the probability that each source is on and its strength.
 *
 *     spikelet demo                                     # makes spikelet-demo/model.h
 *     cargo build --release -p spikelet-ffi             # makes target/release/libspikelet_ffi.a
 *     cc -Iinclude -Ispikelet-demo examples/desktop-c/separate.c target/release/libspikelet_ffi.a -o separate
 *     echo "0.1 0.5 -0.2" | ./separate
 */
#include "model.h"
#include "spikelet.h"
#include <stdio.h>

/* All memory there is. Its size is known when this is compiled. */
static MODEL_ALIGNED unsigned char memory[MODEL_STATE_SIZE];

static int fail(const char *what, spk_status status)
{
    fprintf(stderr, "%s: %s\n", what, spk_status_str(status));
    return 1;
}

int main(void)
{
    spk_state *state;
    spk_estimate estimate;
    float sample[MODEL_DIMS];
    unsigned filled = 0;
    spk_status status = spk_init(memory, sizeof memory, model_blob, sizeof model_blob, &state);

    if (status != SPK_OK)
        return fail("spk_init", status);
    while (scanf("%f", &sample[filled]) == 1) {
        if (++filled < MODEL_DIMS)
            continue;
        filled = 0;
        status = spk_process(state, sample, MODEL_DIMS, &estimate);
        if (status != SPK_OK)
            return fail("spk_process", status);
        for (uint32_t source = 0; source < estimate.latents; source++)
            printf("%s%.3f %+.4f", source ? "  " : "", (double)estimate.activity[source], (double)estimate.mean[source]);
        printf("\n");
    }
    return 0;
}
