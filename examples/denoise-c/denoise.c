/*
 * A voice without its noise: one channel in, the voice out, by a model that is linked in, block by block as a device does it.
 *
 *     denoise noisy.wav clean.wav [DB]      DB: how much of the noise goes away, at most [15]
 *
 * model.h is written by `spikelet export`; README.md says how. On a microcontroller `block` comes from a converter and `voice` goes to one.
 */
#include "../separate-c/wav.h"
#include "model.h"
#include "spikelet.h"

/* All that the library will ever use. */
static MODEL_ALIGNED unsigned char memory[MODEL_STREAM_SIZE];
static int16_t sources[MODEL_HOP * MODEL_SOURCES];

static void must(const char *what, spk_status status)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

static float decibels(const char *text)
{
    char *end;
    const float value = strtof(text, &end);

    if (end == text || *end || !(value >= 0.0f))
        fail("DB", "give a number from 0, which leaves all of the noise, to 100");
    return value;
}

int main(int argc, char **argv)
{
    spk_stream *stream;
    uint32_t count, rate;

    if (argc != 3 && argc != 4)
        fail("usage", "denoise noisy.wav clean.wav [DB]");
    must("model.h", spk_stream_init(memory, sizeof memory, model_blob, sizeof model_blob, &stream));
    must("DB", spk_stream_set_reduction(stream, argc == 4 ? decibels(argv[3]) : 15.0f));

    int16_t *noisy = read_wav(argv[1], MODEL_CHANNELS, MODEL_LATENCY + MODEL_HOP, &count, &rate);
    const size_t total = (size_t)count + MODEL_LATENCY;
    int16_t *clean = zeros((total + MODEL_HOP) * sizeof *clean);
    uint32_t frames = 0, heard = 0;

    if (MODEL_RATE && rate != MODEL_RATE)
        fprintf(stderr, "note: the model was made for %u samples a second, not %u\n", (unsigned)MODEL_RATE, (unsigned)rate);
    for (size_t t = 0; t < total; t += MODEL_HOP) {
        const int16_t *block = noisy + t;
        int16_t *voice = clean + t;
        float activity;

        must(argv[1], spk_stream_process_i16(stream, block, sources, MODEL_HOP));
        for (int i = 0; i < MODEL_HOP; i++)
            voice[i] = sources[i * MODEL_SOURCES]; /* source 0 is the voice: the first name of `merge` */
        must(argv[1], spk_stream_get_activity(stream, 0, &activity));
        frames++;
        heard += activity > 0.5f;
    }
    /* What comes out is MODEL_LATENCY samples late. */
    write_wav(argv[2], clean + MODEL_LATENCY, 1, count, rate);
    printf("%s: %s, heard in %u of %u frames\n", argv[2], spk_stream_group_name(stream, 0), (unsigned)heard, (unsigned)frames);
    free(noisy);
    free(clean);
    return 0;
}
