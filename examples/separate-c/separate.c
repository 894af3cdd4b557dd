/*
 * Separates a recording: one sound file in, one for each source out, by a trained model.
 *
 *     separate model.spk mix.wav            writes source-0.wav, source-1.wav ... and says which is which
 */
#include "spikelet.h"
#include "wav.h"

enum { BLOCK = 256 }; /* samples at a time; any number gives the same sound */

static void must(const char *what, spk_status status)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

int main(int argc, char **argv)
{
    size_t blob_len;
    spk_info model;
    spk_stream *stream;
    spk_stream_info info;
    uint32_t count, rate;

    if (argc != 3)
        fail("usage", "separate model.spk mix.wav");
    unsigned char *blob = read_file(argv[1], &blob_len);
    must(argv[1], spk_inspect(blob, blob_len, &model));
    const size_t size = spk_stream_size(blob, blob_len);
    void *memory = zeros(size); /* all that the library will ever use */
    must(argv[1], spk_stream_init(memory, size, blob, blob_len, &stream));
    must(argv[1], spk_stream_inspect(stream, &info));

    /* Sources come out `latency` samples late: so much silence follows the recording, and the beginning is dropped. */
    int16_t *mix = read_wav(argv[2], info.channels, info.latency, &count, &rate);
    const size_t total = (size_t)count + info.latency;
    int16_t *sources = zeros(total * info.groups * sizeof *sources);
    if (info.rate && rate != info.rate)
        fprintf(stderr, "note: the model was made for %u samples a second, not %u\n", info.rate, rate);
    for (size_t t = 0; t < total; t += BLOCK)
        must(argv[2], spk_stream_process_i16(stream, mix + t * info.channels, sources + t * info.groups,
                                             total - t < BLOCK ? total - t : BLOCK));

    for (uint32_t group = 0; group < info.groups; group++) {
        char path[32];

        sprintf(path, "source-%u.wav", (unsigned)group);
        write_wav(path, sources + (size_t)info.latency * info.groups + group, info.groups, count, rate);
        printf("%s %s\n", path, spk_stream_group_name(stream, group));
    }
    free(blob);
    free(memory);
    free(mix);
    free(sources);
    return 0;
}
