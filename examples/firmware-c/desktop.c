/*
 * The desktop twin of main.c: the same calls on the same model, the digest to compare with.
 *
 *   desktop model.spk samples.f32 dims [count]
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
    size_t blob_len, samples_len, arena;
    uint64_t digest = DIGEST_START;
    spk_state *state;

    if (argc < 4)
        fail("usage", "desktop model.spk samples.f32 dims [count]");

    const void *blob = read_file(argv[1], &blob_len);
    const float *samples = read_file(argv[2], &samples_len);
    const size_t dims = strtoul(argv[3], NULL, 10);
    if (!dims)
        fail(argv[3], "not a number of values in a sample");
    size_t count = samples_len / (dims * sizeof *samples);
    if (argc > 4 && strtoul(argv[4], NULL, 10) < count)
        count = strtoul(argv[4], NULL, 10);

    arena = spk_state_size(blob, blob_len);
    void *memory = malloc(arena);
    float *reconstruction = malloc(dims * sizeof *reconstruction);
    if (!memory || !reconstruction)
        fail("malloc", "no memory");
    must(spk_init(memory, arena, blob, blob_len, &state), "spk_init");

    for (size_t n = 0; n < count; n++) {
        spk_estimate estimate;

        must(spk_process(state, &samples[n * dims], dims, &estimate), "spk_process");
        must(spk_reconstruct(state, reconstruction, dims), "spk_reconstruct");
        digest = digest_estimate(digest, &estimate);
        digest = digest_bytes(digest, reconstruction, dims * sizeof *reconstruction);
    }
    printf("%s digest=%016llx samples=%zu arena=%zu\n", argv[1], (unsigned long long)digest, count, arena);
    return 0;
}
