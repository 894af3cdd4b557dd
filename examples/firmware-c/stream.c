/*
 * A stream on bare metal: sound of several microphones in, one signal for each source out.
 *
 *   samples --spk_stream_process, block by block--> sources
 *
 * The recording lies in flash, where a product would have a converter. It is sent twice, in blocks of one sample and of
 * changing lengths: the digest of what comes out must be the same, and that of the desktop.
 */
#include <stdint.h>

#include "board.h"
#include "digest.h"
#include "model.h"
#include "must.h"
#include "spikelet.h"

enum { LONGEST = 64, MOST_GROUPS = 8 };

static uint64_t memory[MEMORY_BYTES / sizeof(uint64_t)];
static float sources[LONGEST * MOST_GROUPS];

/* The whole recording from the beginning, in blocks of these lengths in turn. */
static uint64_t run(spk_stream *stream, const spk_stream_info *info, const uint32_t *blocks, uint32_t count)
{
    const uint32_t samples = model_samples_size / (info->channels * sizeof(float));
    uint64_t digest = DIGEST_START;

    must(spk_stream_reset(stream), "spk_stream_reset");
    for (uint32_t done = 0, turn = 0; done < samples; turn++) {
        uint32_t block = blocks[turn % count];

        if (block > samples - done)
            block = samples - done;
        must(spk_stream_process(stream, &model_samples[done * info->channels], sources, block), "spk_stream_process");
        digest = digest_bytes(digest, sources, block * info->groups * sizeof(float));
        done += block;
    }
    return digest;
}

int main(void)
{
    static const uint32_t single[] = {1}, several[] = {LONGEST, 7, 16, 33};
    spk_stream *stream;
    spk_stream_info info;

    must(spk_stream_init(memory, sizeof memory, model_blob, model_blob_size, &stream), "spk_stream_init");
    must(spk_stream_inspect(stream, &info), "spk_stream_inspect");
    if (info.groups > MOST_GROUPS) {
        print("too many groups\n");
        return 1;
    }
    const uint64_t digest = run(stream, &info, single, 1);

    if (digest != run(stream, &info, several, 4)) {
        print("the length of blocks matters\n");
        return 1;
    }
    print(MODEL_NAME " digest=");
    print_hex(digest);
    print_value(" latency=", info.latency);
    print_value(" stack=", board_stack_used());
    print_value(" arena=", (uint32_t)spk_stream_size(model_blob, model_blob_size));
    print(" first=");
    print(spk_stream_group_name(stream, 0));
    print("\n");
    return 0;
}
