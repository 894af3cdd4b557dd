/*
 * Is it fast enough? PCM comes in blocks as from a converter, and every block must be done before the next is there.
 *
 *   converter --BLOCK samples--> spk_stream_process_i16 --> sources          counted: instructions of this call
 *
 * A block lasts BLOCK / rate seconds, in which a processor of CLOCK_HZ has so many cycles: that is the budget. Emulators count
 * instructions, not cycles; CPI_PERCENT says how many cycles a hundred of them are taken for. The program fails when
 * the worst block is over the budget. What it prints ends in a digest of all sources, the same on every board and on
 * the desktop (make BOARD=host realtime), which has no such clock and prints only that.
 */
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "digest.h"
#include "model.h"
#include "must.h"
#include "spikelet.h"
#include "timer.h"

enum { MOST_CHANNELS = 8, MOST_GROUPS = 8, WAV_HEADER = 44 };

static uint64_t memory[MEMORY_BYTES / sizeof(uint64_t)];
static int16_t microphones[BLOCK * MOST_CHANNELS], sources[BLOCK * MOST_GROUPS];

static void stop(const char *what, const char *why)
{
    print(what);
    print(": ");
    print(why);
    print("\n");
    board_exit(1);
}

#if MODEL_PCM

/* The recording is a WAV file as most programs write it: 44 bytes, then samples. */
static uint32_t recorded(const spk_stream_info *info)
{
    const unsigned char *wav = (const unsigned char *)model_samples;

    if (model_samples_size < WAV_HEADER || memcmp(wav, "RIFF", 4) || memcmp(&wav[8], "WAVEfmt \x10\0\0\0\1", 13)
        || wav[34] != 16 || memcmp(&wav[36], "data", 4))
        stop("recording", "need a WAV file of 16-bit integers with a header of 44 bytes");
    if (wav[22] != info->channels)
        stop("recording", "the model is for another number of channels");
    return (model_samples_size - WAV_HEADER) / (2 * info->channels);
}

/* A product has a DMA buffer here. */
static void converter(const spk_stream_info *info, uint32_t at, uint32_t count)
{
    const unsigned char *pcm = (const unsigned char *)model_samples + WAV_HEADER;

    memcpy(microphones, pcm + 2 * at * info->channels, 2 * count * info->channels);
}

#else

static uint32_t recorded(const spk_stream_info *info)
{
    return model_samples_size / (info->channels * sizeof(float));
}

/* The recording is made of floats: the nearest integers, as a converter would give them. */
static void converter(const spk_stream_info *info, uint32_t at, uint32_t count)
{
    for (uint32_t i = 0; i < count * info->channels; i++) {
        const float value = model_samples[at * info->channels + i] * 32768.0f;

        if (value >= 32767.0f)
            microphones[i] = 32767;
        else if (value > -32768.0f)
            microphones[i] = (int16_t)(value < 0.0f ? value - 0.5f : value + 0.5f);
        else
            microphones[i] = -32768;
    }
}

#endif

/* Of a budget, in tenths of a percent. */
static void print_share(const char *label, uint64_t cycles, uint64_t budget)
{
    const uint64_t tenths = cycles * 1000 / budget;

    print_value(label, (uint32_t)(tenths / 10));
    print_value(".", (uint32_t)(tenths % 10));
    print("%");
}

int main(void)
{
    uint64_t digest = DIGEST_START, sum = 0;
    uint32_t blocks = 0, worst = 0;
    spk_stream *stream;
    spk_stream_info info;

    must(spk_stream_init(memory, sizeof memory, model_blob, model_blob_size, &stream), "spk_stream_init");
    must(spk_stream_inspect(stream, &info), "spk_stream_inspect");
    if (info.channels > MOST_CHANNELS || info.groups > MOST_GROUPS)
        stop("realtime.c", "MOST_CHANNELS or MOST_GROUPS is too small for this model");
    if (!timer_start())
        stop("timer", "it does not count instructions: run QEMU with the -icount of the Makefile");

    const uint32_t rate = RATE > 0 ? RATE : info.rate, samples = recorded(&info);
    if (rate == 0)
        stop("rate", "the model does not say how many samples there are in a second: make RATE=...");
    if (samples < BLOCK)
        stop("recording", "it is shorter than a block");

    for (uint32_t done = 0; done < samples; done += BLOCK) {
        const uint32_t count = samples - done < BLOCK ? samples - done : BLOCK;

        converter(&info, done, count);
        const uint32_t start = timer_now();
        const spk_status status = spk_stream_process_i16(stream, microphones, sources, count);
        const uint32_t taken = timer_between(start, timer_now());

        must(status, "spk_stream_process_i16");
        digest = digest_bytes(digest, sources, count * info.groups * sizeof *sources);
        if (count < BLOCK)
            break; /* the end of the recording, less than a block: no measure */
        blocks++;
        sum += taken;
        worst = taken > worst ? taken : worst;
    }

    const uint64_t budget = (uint64_t)BLOCK * CLOCK_HZ / rate;
    const uint64_t worst_cycles = (uint64_t)worst * CPI_PERCENT / 100;
    if (budget == 0)
        stop("clock", "there is not a cycle for a block");

    print(MODEL_NAME " realtime");
    if (TIMER_COUNTS) {
        print_value(" block=", BLOCK);
        print_value(" blocks=", blocks);
        print_value(" rate=", rate);
        print_value(" clock=", CLOCK_HZ);
        print_value(" instructions=", (uint32_t)(sum / blocks));
        print_value(" worst=", worst);
        print_value(" budget=", budget > UINT32_MAX ? UINT32_MAX : (uint32_t)budget);
        print_share(" load=", sum * CPI_PERCENT / 100 / blocks, budget);
        print_share(" worst-load=", worst_cycles, budget);
    }
    print(" digest=");
    print_hex(digest);
    print("\n");
    if (worst_cycles > budget)
        stop("too slow", "the worst block takes longer than it lasts");
    return 0;
}
