// Spikelet's streams in C++11: one class, to copy into a project. Memory is taken once, by the constructor; process() takes
// none, does not block, lock or throw, and may be called by an audio thread.
#ifndef SPIKELET_HPP
#define SPIKELET_HPP

#include "spikelet.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace spikelet {

class Error : public std::runtime_error {
public:
    explicit Error(spk_status status) : std::runtime_error(spk_status_str(status)), status(status) {}
    const spk_status status;
};

inline void check(spk_status status)
{
    if (status != SPK_OK)
        throw Error(status);
}

// One stream of one model. The blob is not copied: it must stay where it is, 8-byte aligned, as long as the stream lives.
// Several streams may share it. Movable: the state stays where it is on the heap.
class Stream {
public:
    Stream(const void *blob, std::size_t len)
    {
        spk_info model;
        check(spk_inspect(blob, len, &model)); // says why a blob is refused; the size below would only be 0
        const std::size_t bytes = spk_stream_size(blob, len);
        memory_.reset(new std::uint64_t[bytes / sizeof(std::uint64_t) + 1]); // of a type that is aligned as it must be
        check(spk_stream_init(memory_.get(), bytes, blob, len, &stream_));
        check(spk_stream_inspect(stream_, &info_));
    }

    std::size_t channels() const noexcept { return info_.channels; } // numbers of a sample that goes in
    std::size_t sources() const noexcept { return info_.groups; }    // and of one that comes out
    std::size_t latency() const noexcept { return info_.latency; }   // samples by which sources come later
    std::size_t hop() const noexcept { return info_.hop; }           // samples from one burst of work to the next
    unsigned rate() const noexcept { return info_.rate; }            // samples a second; 0: unknown
    std::string name(std::size_t source) const
    {
        return spk_stream_group_name(stream_, static_cast<std::uint32_t>(source));
    }

    // `samples` times channels() numbers in, `samples` times sources() out, interleaved. Real-time safe.
    spk_status process(const float *in, float *out, std::size_t samples) noexcept
    {
        return spk_stream_process(stream_, in, out, samples);
    }
    spk_status process(const std::int16_t *in, std::int16_t *out, std::size_t samples) noexcept
    {
        return spk_stream_process_i16(stream_, in, out, samples);
    }

    // As if nothing had gone before.
    void reset() { check(spk_stream_reset(stream_)); }

private:
    std::unique_ptr<std::uint64_t[]> memory_;
    spk_stream *stream_ = nullptr;
    spk_stream_info info_ = spk_stream_info();
};

} // namespace spikelet

#endif
