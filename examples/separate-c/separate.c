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

static void *fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

static void must(const char *what, spk_status status)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

static void *need(void *memory) { return memory ? memory : fail("malloc", "no memory"); }

/* A whole file. malloc aligns well enough for a blob. */
static unsigned char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    unsigned char *bytes = size > 0 && !fseek(file, 0, SEEK_SET) ? need(malloc((size_t)size)) : NULL;

    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        fail(path, "cannot read it");
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

static uint32_t number(const unsigned char *bytes, int count)
{
    return count ? bytes[0] | number(bytes + 1, count - 1) << 8 : 0;
}

/* The samples of a WAV file of 16-bit integers, and what its header says of them. */
static int16_t *samples(const char *path, uint32_t channels, uint32_t *count, uint32_t *rate)
{
    size_t len, at = 12, size = 0;
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
    if (!format || at + 8 > len || number(format + 14, 2) != 16 || number(format, 2) == 3)
        fail(path, "need a WAV file of 16-bit integers");
    if (number(format + 2, 2) != channels)
        fail(path, "the model is for another number of channels");
    *rate = number(format + 4, 4);
    *count = (uint32_t)(size / (2 * channels));
    int16_t *found = need(malloc(size + 2));
    for (size_t i = 0; i < (size_t)*count * channels; i++)
        found[i] = (int16_t)number(wav + at + 8 + 2 * i, 2);
    free(wav);
    return found;
}

static void write_wav(const char *path, const int16_t *sources, uint32_t count, uint32_t stride, uint32_t rate)
{
    const uint32_t head[] = {0x46464952, 36 + 2 * count, 0x45564157, 0x20746d66, 16,       0x10001,
                             rate,       2 * rate,       0x100002,   0x61746164, 2 * count};
    FILE *file = fopen(path, "wb");

    if (!file)
        fail(path, "cannot write it");
    for (int i = 0; i < 44; i++) /* byte by byte: little-endian whatever this machine is */
        fputc((int)(head[i / 4] >> 8 * (i % 4) & 255), file);
    for (size_t i = 0; i < count; i++) {
        fputc(sources[i * stride] & 255, file);
        fputc(sources[i * stride] >> 8 & 255, file);
    }
    if (fclose(file))
        fail(path, "cannot write it");
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
    size_t size = spk_stream_size(blob, blob_len); /* all the memory it will ever use */
    void *memory = need(malloc(size + !size));
    must(argv[1], spk_stream_init(memory, size, blob, blob_len, &stream));
    must(argv[1], spk_stream_inspect(stream, &info));
    int16_t *mix = samples(argv[2], info.channels, &count, &rate);
    if (info.rate && rate != info.rate)
        fprintf(stderr, "note: the model was made for %u samples a second, not %u\n", info.rate, rate);

    /* Sources come out `latency` samples late: that much silence follows, and the beginning is dropped. */
    uint32_t total = count + info.latency;
    mix = need(realloc(mix, ((size_t)total * info.channels + 1) * sizeof *mix));
    memset(mix + (size_t)count * info.channels, 0, (size_t)info.latency * info.channels * sizeof *mix);
    int16_t *sources = need(malloc(((size_t)total * info.groups + 1) * sizeof *sources));
    for (uint32_t t = 0; t < total; t += BLOCK)
        must(argv[2], spk_stream_process_i16(stream, mix + (size_t)t * info.channels, sources + (size_t)t * info.groups,
                                             total - t < BLOCK ? total - t : BLOCK));
    for (uint32_t group = 0; group < info.groups; group++) {
        char path[32];

        sprintf(path, "source-%u.wav", group);
        write_wav(path, sources + (size_t)info.latency * info.groups + group, count, info.groups, rate);
        printf("%s %s\n", path, spk_stream_group_name(stream, group));
    }
    free(blob), free(memory), free(mix), free(sources);
    return 0;
}
