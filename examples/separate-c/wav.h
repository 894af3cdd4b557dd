/*
 * Files for the examples: whole files, sound files. Integers of 16 bits and floats are read, integers written. C99 and C++11. Whatever goes wrong ends the program
 * with a line on standard error.
 */
#ifndef WAV_H
#define WAV_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

static inline void *zeros(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    if (!memory)
        fail("calloc", "no memory");
    return memory;
}

/* A whole file. calloc aligns well enough for a blob. */
static inline unsigned char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : 0;
    unsigned char *bytes = (unsigned char *)zeros(size > 0 ? (size_t)size : 0);

    if (size <= 0 || fseek(file, 0, SEEK_SET) || fread(bytes, (size_t)size, 1, file) != 1)
        fail(path, "cannot read it");
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

/* Little-endian, like every processor that the library runs on. */
static inline uint32_t wav_number(const unsigned char *bytes, size_t len)
{
    uint32_t value = 0;
    memcpy(&value, bytes, len);
    return value;
}

static inline int16_t wav_integer(const unsigned char *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    value *= 32768.0f;
    if (!(value > -32768.0f)) /* not a number, too */
        return -32768;
    return (int16_t)(value >= 32767.0f ? 32767.0f : value < 0.0f ? value - 0.5f : value + 0.5f);
}

/* The samples of a WAV file with so many channels, `silence` more of them at the end. */
static inline int16_t *read_wav(const char *path, uint32_t channels, uint32_t silence, uint32_t *count, uint32_t *rate)
{
    size_t len, size = 0, format_size = 0, at = 12;
    unsigned char *wav = read_file(path, &len), *format = NULL;

    if (len < 12 || memcmp(wav, "RIFF", 4) || memcmp(wav + 8, "WAVE", 4))
        fail(path, "not a WAV file");
    for (; at + 8 <= len; at += 8 + size + size % 2) { /* chunks: four letters, a length, content */
        size = wav_number(wav + at + 4, 4);
        if (size > len - at - 8)
            size = len - at - 8;
        if (!memcmp(wav + at, "fmt ", 4) && size >= 16) {
            format = wav + at + 8;
            format_size = size;
        } else if (!memcmp(wav + at, "data", 4)) {
            break;
        }
    }
    if (!format || at + 8 > len)
        fail(path, "a WAV file without format or samples");
    uint32_t kind = wav_number(format, 2); /* 1: integers, 3: floats, 0xfffe: it says so further back */
    const uint32_t bits = wav_number(format + 14, 2);
    if (kind == 0xfffe && format_size >= 26)
        kind = wav_number(format + 24, 2);
    if (!(kind == 1 && bits == 16) && !(kind == 3 && bits == 32))
        fail(path, "need a WAV file of 16-bit integers or 32-bit floats");
    if (wav_number(format + 2, 2) != channels)
        fail(path, "the model is for another number of channels");
    *rate = wav_number(format + 4, 4);
    *count = (uint32_t)(size / (bits / 8 * channels));
    int16_t *samples = (int16_t *)zeros(((size_t)*count + silence) * channels * sizeof *samples);
    if (kind == 1)
        memcpy(samples, wav + at + 8, (size_t)*count * channels * sizeof *samples);
    for (size_t i = 0; kind == 3 && i < (size_t)*count * channels; i++)
        samples[i] = wav_integer(wav + at + 8 + 4 * i);
    free(wav);
    return samples;
}

/* One channel: every `stride`-th of the samples. */
static inline void write_wav(const char *path, const int16_t *source, size_t stride, uint32_t count, uint32_t rate)
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

#endif
