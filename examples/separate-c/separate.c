/*
 * Separates a recording: one sound file in, one for each source out, by a trained model.
 *
 *     separate model.spk mix.wav            writes source-0.wav, source-1.wav ... and says which is which
 */
#include "spikelet.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* samples at a time; any number gives the same sound */

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

static void must(const char *what, spk_status status)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

static void *zeros(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    if (!memory)
        fail("calloc", "no memory");
    return memory;
}

/* A whole file. calloc aligns well enough for a blob. */
static unsigned char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : 0;
    unsigned char *bytes = zeros(size > 0 ? (size_t)size : 0);

    if (size <= 0 || fseek(file, 0, SEEK_SET) || fread(bytes, (size_t)size, 1, file) != 1)
        fail(path, "cannot read it");
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

/* Little-endian, like every processor that the library runs on. */
static uint32_t number(const unsigned char *bytes, size_t len)
{
    uint32_t value = 0;
    memcpy(&value, bytes, len);
    return value;
}

/* The samples of a WAV file of 16-bit integers, `silence` more of them at the end. */
static int16_t *read_wav(const char *path, uint32_t channels, uint32_t silence, uint32_t *count, uint32_t *rate)
{
    size_t len, size = 0, at = 12;
    unsigned char *wav = read_file(path, &len), *format = NULL;

    if (len < 12 || memcmp(wav, "RIFF", 4) || memcmp(wav + 8, "WAVE", 4))
        fail(path, "not a WAV file");
    for (; at + 8 <= len; at += 8 + size + size % 2) { /* chunks: four letters, a length, content */
        size = number(wav + at + 4, 4);
        if (size > len - at - 8)
            size = len - at - 8;
        if (!memcmp(wav + at, "fmt ", 4) && size >= 16)
            format = wav + at + 8;
        else if (!memcmp(wav + at, "data", 4))
            break;
    }
    if (!format || at + 8 > len || number(format, 2) == 3 || number(format + 14, 2) != 16)
        fail(path, "need a WAV file of 16-bit integers");
    if (number(format + 2, 2) != channels)
        fail(path, "the model is for another number of channels");
    *rate = number(format + 4, 4);
    *count = (uint32_t)(size / (2 * channels));
    int16_t *samples = zeros(((size_t)*count + silence) * channels * sizeof *samples);
    memcpy(samples, wav + at + 8, (size_t)*count * channels * sizeof *samples);
    free(wav);
    return samples;
}

static void write_wav(const char *path, const int16_t *source, uint32_t stride, uint32_t count, uint32_t rate)
{
    const uint32_t head[] = {0x46464952, 36 + 2 * count, 0x45564157, 0x20746d66, 16,       0x10001,
                             rate,       2 * rate,       0x100002,   0x61746164, 2 * count};
    FILE *file = fopen(path, "wb");
    size_t written = file ? fwrite(head, sizeof head, 1, file) : 0;

    for (size_t t = 0; t < count && written; t++)
        written = fwrite(source + t * stride, sizeof *source, 1, file);
    if (!written || fclose(file))
        fail(path, "cannot write it");
}

int main(int argc, char **argv)
{
    size_t blob_len, size;
    spk_info model;
    spk_stream *stream;
    spk_stream_info info;
    uint32_t count, rate;

    if (argc != 3)
        fail("usage", "separate model.spk mix.wav");
    unsigned char *blob = read_file(argv[1], &blob_len);
    must(argv[1], spk_inspect(blob, blob_len, &model));
    size = spk_stream_size(blob, blob_len);
    void *memory = zeros(size); /* all that the library will ever use */
    must(argv[1], spk_stream_init(memory, size, blob, blob_len, &stream));
    must(argv[1], spk_stream_inspect(stream, &info));

    /* Sources come out `latency` samples late: so much silence follows the recording, and the beginning is dropped. */
    int16_t *mix = read_wav(argv[2], info.channels, info.latency, &count, &rate);
    size_t total = (size_t)count + info.latency;
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
