// The desktop example of ../desktop-c in C++11: the state in a class, errors as exceptions, samples as
// vectors. Build it the same way, with c++ -std=c++11.
#include "model.h"
#include "spikelet.h"
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <vector>

class Separator {
public:
    Separator(const void *blob, std::size_t len)
        : memory_((spk_state_size(blob, len) + sizeof(double) - 1) / sizeof(double))
    {
        check(spk_init(memory_.data(), memory_.size() * sizeof(double), blob, len, &state_));
    }

    // The state lives in memory_, which a move keeps in place; a copy would share it.
    Separator(const Separator &) = delete;
    Separator &operator=(const Separator &) = delete;

    // Valid until the next call.
    const spk_estimate &process(const std::vector<float> &sample)
    {
        check(spk_process(state_, sample.data(), sample.size(), &estimate_));
        return estimate_;
    }

    std::vector<float> reconstruct(std::size_t dims)
    {
        std::vector<float> clean(dims);
        check(spk_reconstruct(state_, clean.data(), clean.size()));
        return clean;
    }

private:
    static void check(spk_status status)
    {
        if (status != SPK_OK)
            throw std::runtime_error(spk_status_str(status));
    }

    std::vector<double> memory_; // doubles, for their alignment
    spk_state *state_ = nullptr;
    spk_estimate estimate_ = {};
};

int main()
{
    try {
        Separator separator(model_blob, sizeof model_blob);
        std::vector<float> sample;
        for (float value; std::cin >> value;) {
            sample.push_back(value);
            if (sample.size() < MODEL_DIMS)
                continue;
            const spk_estimate &found = separator.process(sample);
            for (std::uint32_t source = 0; source < found.latents; source++)
                std::printf("%s%.3f %+.4f", source ? "  " : "", static_cast<double>(found.activity[source]),
                            static_cast<double>(found.mean[source]));
            std::printf("\n");
            separator.reconstruct(MODEL_DIMS);
            sample.clear();
        }
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
