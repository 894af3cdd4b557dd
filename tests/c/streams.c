/*
 * Streams through spikelet.h: good arguments accepted, bad ones refused, the same bits in blocks of any length, as numbers
 * and as integers. Also writes the recording as a sound file, for examples/separate-c.
 *
 *     streams model.spk recording.f32 mix.wav       two channels, three sources
 */
#include "expect.h"
#include "spikelet.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 500, CHANNELS = 2, GROUPS = 3 };

static float recording[SAMPLES * CHANNELS], whole[SAMPLES * GROUPS], parts[SAMPLES * GROUPS];
static int16_t integers[SAMPLES * CHANNELS], sources[SAMPLES * GROUPS];

static void *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    void *bytes = malloc(1 << 16);

    *len = file && bytes ? fread(bytes, 1, 1 << 16, file) : 0;
    if (*len == 0)
        exit(2);
    fclose(file);
    return bytes;
}

/* Little-endian, as everything here. */
static void write_wav(const char *path)
{
    const uint32_t head[] = {0x46464952, 36 + sizeof integers, 0x45564157, 0x20746d66, 16,
                             0x20001,    8000,                 32000,      0x100004,   0x61746164,
                             sizeof integers};
    FILE *file = fopen(path, "wb");

    EXPECT(file && fwrite(head, 44, 1, file) == 1 && fwrite(integers, sizeof integers, 1, file) == 1);
    EXPECT(file && fclose(file) == 0);
}

/* The whole recording in blocks of this length. */
static void in_blocks(spk_stream *stream, size_t block)
{
    EXPECT(spk_stream_reset(stream) == SPK_OK);
    memset(parts, 0xff, sizeof parts);
    for (size_t t = 0; t < SAMPLES; t += block) {
        size_t n = SAMPLES - t < block ? SAMPLES - t : block;
        EXPECT(spk_stream_process(stream, recording + t * CHANNELS, parts + t * GROUPS, n) == SPK_OK);
    }
}

int main(int argc, char **argv)
{
    static const size_t blocks[] = {1, 2, 3, 16, 64, 100, 499};
    size_t len, bytes, i;
    spk_stream_info info;
    spk_stream *stream;

    if (argc != 4)
        return 2;
    unsigned char *blob = read_file(argv[1], &len), *numbers = read_file(argv[2], &bytes);
    EXPECT(bytes == sizeof recording);
    memcpy(recording, numbers, sizeof recording);
    const size_t size = spk_stream_size(blob, len);
    unsigned char *memory = malloc(size), *other = malloc(size);

    EXPECT(size > 0 && size % SPK_STATE_ALIGN == 0 && spk_stream_size(NULL, len) == 0);
    EXPECT(spk_stream_init(NULL, size, blob, len, &stream) == SPK_ERR_NULL && stream == NULL);
    EXPECT(spk_stream_init(memory, size, NULL, len, &stream) == SPK_ERR_NULL);
    EXPECT(spk_stream_init(memory, size, blob, len, NULL) == SPK_ERR_NULL);
    EXPECT(spk_stream_init(memory + 1, size, blob, len, &stream) == SPK_ERR_ALIGNMENT);
    EXPECT(spk_stream_init(memory, size - 1, blob, len, &stream) == SPK_ERR_MEMORY);
    EXPECT(spk_stream_init(memory, size, blob, len - 1, &stream) == SPK_ERR_BLOB_TRUNCATED);
    for (i = 0; i < len; i++) { /* every byte changed in turn; the revision is not checked */
        blob[i] ^= 0x5a;
        EXPECT((spk_stream_init(memory, size, blob, len, &stream) == SPK_OK) == (i == 6 || i == 7));
        blob[i] ^= 0x5a;
    }
    EXPECT(spk_stream_init(memory, size, blob, len, &stream) == SPK_OK);
    EXPECT(spk_stream_inspect(NULL, &info) == SPK_ERR_NULL && spk_stream_inspect(stream, NULL) == SPK_ERR_NULL);
    EXPECT(spk_stream_inspect(stream, &info) == SPK_OK);
    EXPECT(info.channels == CHANNELS && info.groups == GROUPS && info.latency == 31 && info.hop == 16);
    EXPECT(info.rate == 8000 && strcmp(spk_stream_group_name(stream, 2), "right") == 0);
    EXPECT(*spk_stream_group_name(stream, 3) == 0 && *spk_stream_group_name(NULL, 0) == 0);
    memset(other, 0, size);
    EXPECT(spk_stream_reset(NULL) == SPK_ERR_NULL && spk_stream_reset((spk_stream *)(void *)other) == SPK_ERR_STATE);

    EXPECT(spk_stream_process(stream, recording, whole, SAMPLES) == SPK_OK);
    for (i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        in_blocks(stream, blocks[i]);
        EXPECT(memcmp(whole, parts, sizeof whole) == 0);
    }
    EXPECT(spk_stream_process(NULL, recording, parts, 1) == SPK_ERR_NULL);
    EXPECT(spk_stream_process(stream, NULL, parts, 1) == SPK_ERR_NULL);
    EXPECT(spk_stream_process(stream, recording, NULL, 1) == SPK_ERR_NULL);
    EXPECT(spk_stream_process(stream, parts, parts, 1) == SPK_ERR_OVERLAP);
    EXPECT(spk_stream_process(stream, recording, parts, SIZE_MAX / 2) == SPK_ERR_LENGTH);
    EXPECT(spk_stream_process(stream, recording, parts, 0) == SPK_OK);
    const float first = recording[0];
    recording[0] = NAN;
    EXPECT(spk_stream_process(stream, recording, parts, 10) == SPK_ERR_NOT_FINITE);
    recording[0] = first;

    for (i = 0; i < SAMPLES * CHANNELS; i++) {
        const float value = roundf(recording[i] * 32768.0f); /* as wav.h and realtime.c of the examples do */
        integers[i] = (int16_t)(value > 32767.0f ? 32767.0f : value < -32768.0f ? -32768.0f : value);
        recording[i] = (float)integers[i] / 32768.0f;
    }
    in_blocks(stream, 50);
    EXPECT(spk_stream_reset(stream) == SPK_OK);
    EXPECT(spk_stream_process_i16(stream, integers, sources, SAMPLES) == SPK_OK);
    for (i = 0; i < SAMPLES * GROUPS; i++)
        EXPECT(fabsf((float)sources[i] - 32768.0f * parts[i]) <= 0.5f || abs(sources[i]) >= 32767);
    EXPECT(spk_stream_process_i16(stream, integers, NULL, 1) == SPK_ERR_NULL);

    write_wav(argv[3]);
    free(blob);
    free(numbers);
    free(memory);
    free(other);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
