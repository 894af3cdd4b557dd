// Separates sound while it plays: blocks come from an audio callback, sources go out of it.
//
//     realtime [--fast] [--block N] model.spk mix.wav      writes source-0.wav, source-1.wav ...
//
//   sound card --callback(in, out, samples), a block--> spikelet::Stream::process --> one signal for each source
//
// A recording takes the sound card's place: the audio thread below calls the callback whenever a block of it would have been
// recorded, with --fast as soon as the one before is done. With PortAudio, JACK or miniaudio the callback stays as it is.
#include "../separate-c/wav.h"
#include "spikelet.hpp"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Counted, so that the program can tell that its callback allocates nothing.
static unsigned long allocations;

void *operator new(std::size_t bytes)
{
    allocations++;
    if (void *memory = std::malloc(bytes ? bytes : 1))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

// What the callback needs, made before the sound starts.
struct Separation {
    spikelet::Stream stream;
    unsigned long blocks, late, refused, allocated;
    double worst, sum; // share of the time that a block lasts

    Separation(const void *blob, std::size_t len)
        : stream(blob, len), blocks(0), late(0), refused(0), allocated(0), worst(0), sum(0)
    {
    }
};

// The callback, as every audio library has it: so many samples in, so many out, before the next are there.
static void callback(const std::int16_t *in, std::int16_t *out, std::size_t samples, unsigned rate, void *user) noexcept
{
    Separation &self = *static_cast<Separation *>(user);
    const unsigned long before = allocations;
    const Clock::time_point start = Clock::now();

    if (self.stream.process(in, out, samples) != SPK_OK) // cannot be thrown here: counted, and reported afterwards
        self.refused++;

    const double share = Seconds(Clock::now() - start).count() * rate / static_cast<double>(samples);
    self.allocated += allocations - before;
    self.worst = std::max(self.worst, share);
    self.sum += share;
    self.late += share > 1.0;
    self.blocks++;
}

// The sound card: calls back when the next block is recorded. Waits, but for the callback nothing else.
static void audio_thread(Separation &self, const std::int16_t *mix, std::int16_t *sources, std::size_t total, std::size_t block,
                         unsigned rate, bool fast)
{
    const Clock::time_point start = Clock::now();

    for (std::size_t t = 0; t < total; t += block) {
        const std::size_t samples = std::min(block, total - t);
        if (!fast)
            std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(
                                                      Seconds(static_cast<double>(t + samples) / rate)));
        callback(mix + t * self.stream.channels(), sources + t * self.stream.sources(), samples, rate, &self);
    }
}

static int run(const char *model, const char *recording, std::size_t block, bool fast)
{
    std::size_t blob_len;
    std::uint32_t count, rate;
    const std::unique_ptr<unsigned char, void (*)(void *)> blob(read_file(model, &blob_len), std::free);
    Separation separation(blob.get(), blob_len);
    const spikelet::Stream &stream = separation.stream;

    // Silence after the recording, until the last of its sources is out.
    const auto latency = static_cast<std::uint32_t>(stream.latency());
    const auto channels = static_cast<std::uint32_t>(stream.channels());
    const std::unique_ptr<std::int16_t, void (*)(void *)> mix(read_wav(recording, channels, latency, &count, &rate), std::free);
    if (rate == 0 || count == 0)
        fail(recording, "nothing is recorded in it");
    if (stream.rate() != 0 && stream.rate() != rate)
        std::cerr << "note: the model was made for " << stream.rate() << " samples a second, not " << rate << "\n";
    const std::size_t total = std::size_t(count) + latency;
    std::vector<std::int16_t> sources(total * stream.sources());

    std::thread audio(audio_thread, std::ref(separation), mix.get(), sources.data(), total, block, rate, fast);
    audio.join();

    for (std::size_t source = 0; source < stream.sources(); source++) {
        const std::string path = "source-" + std::to_string(source) + ".wav";
        write_wav(path.c_str(), sources.data() + latency * stream.sources() + source, stream.sources(), count, rate);
        std::cout << path << " " << stream.name(source) << "\n";
    }
    const double block_ms = 1000.0 * static_cast<double>(block) / rate;
    std::cout << "latency: " << stream.latency() << " samples of the model, " << block << " of the block, "
              << 1000.0 * latency / rate + block_ms << " ms in all\n"
              << "time: " << 100.0 * separation.sum / static_cast<double>(separation.blocks) << " % of real time, the worst block "
              << 100.0 * separation.worst << " %, " << separation.late << " of " << separation.blocks << " blocks late\n"
              << "allocations in the callback: " << separation.allocated << "\n";
    if (separation.refused > 0)
        std::cerr << "note: " << separation.refused << " blocks were too loud for the model or refused\n";
    return separation.allocated > 0;
}

int main(int argc, char **argv)
{
    bool fast = false;
    long block = 256;
    int next = 1;

    for (; next < argc && std::string(argv[next]).compare(0, 2, "--") == 0; next++) {
        const std::string option = argv[next];
        if (option == "--fast")
            fast = true;
        else if (option == "--block" && next + 1 < argc)
            block = std::strtol(argv[++next], nullptr, 10);
        else
            fail(argv[next], "options are --fast and --block N");
    }
    if (argc - next != 2)
        fail("usage", "realtime [--fast] [--block N] model.spk mix.wav");
    if (block < 1 || block > 1 << 20)
        fail("--block", "samples, from 1 to 1048576");
    try {
        return run(argv[next], argv[next + 1], static_cast<std::size_t>(block), fast);
    } catch (const std::exception &error) {
        fail(argv[next], error.what());
    }
}
