"""Voices in noise on one microphone: Spikelet beside RNNoise and WebRTC's suppressor. Prints a Markdown table; about five minutes.

    python3 one_channel_peers.py DATA target/release/spikelet [VOICES]

DATA has the folders speech and speech_digits (WAV, 8 kHz); VOICES is how many voices are tried [all]. Noises are a fan, knocks of a machine, and
six people who talk at once, each as loud as the voice. Spikelet learns the noise from another recording of it, and the voice from the
first two thirds of its own recording ("own") or of those of all other speakers ("others"); its streams are those of a device, spectra in bytes.
The other two know nothing of the noise and run at 48 and 16 kHz, to which the sound is resampled; they hear the two thirds before in noise as well, so
that they are settled where the figures begin, and the delay that suits them best, in steps of 1/48 ms, is taken out. "clean" is what they do to the voice alone.

Means over voices of SI-SDR in dB; SDR in dB, the same where the voice may have gone through any filter of 64 taps (as in BSS Eval, for WebRTC's high-pass turns
phases); PESQ (narrow band, 1 to 4.5); STOI (0 to 1).

Packages that are missing are installed into a virtual environment in the folder for temporary files.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile

NEEDED = {"numpy": "numpy", "scipy": "scipy", "pesq": "pesq", "pystoi": "pystoi", "pyrnnoise": "pyrnnoise", "webrtc_noise_gain": "webrtc-noise-gain"}
if any(importlib.util.find_spec(name) is None for name in NEEDED):
    home = os.path.join(tempfile.gettempdir(), "spikelet-peers")
    python = os.path.join(home, "bin", "python")
    if os.path.abspath(sys.executable) == os.path.abspath(python):
        sys.exit("error: packages cannot be installed: " + ", ".join(NEEDED.values()))
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED.values()], check=True, stdout=sys.stderr)
    os.execv(python, [python, *sys.argv])

import warnings

import numpy as np
import scipy.signal as signal
from pesq import pesq
from pyrnnoise import RNNoise
from pystoi import stoi
from webrtc_noise_gain import AudioProcessor

from one_channel_common import RATE, Bench, fan, knocks, read, read_folder, talk, unit, write

warnings.filterwarnings("ignore")
LOUD = 16000
FINE = 6
TAPS = 64


def ratio_db(estimate, found):
    rest = estimate - found
    return 10 * np.log10((found @ found) / (rest @ rest + 1e-12))


def si_sdr(estimate, truth):
    return ratio_db(estimate, (estimate @ truth) / (truth @ truth) * truth)


def sdr(estimate, truth):
    """SI-SDR of what the best filter of the truth leaves."""
    shifted = np.stack([np.roll(truth, k - TAPS // 2) for k in range(TAPS)], axis=1)
    return ratio_db(estimate, shifted @ np.linalg.lstsq(shifted, estimate, rcond=None)[0])


def rnnoise(pcm):
    return np.concatenate([np.asarray(frame).reshape(-1) for _, frame in RNNoise(sample_rate=48000).denoise_chunk(pcm[None], partial=True)])


def webrtc(level):
    def process(pcm):
        processor = AudioProcessor(0, level)
        return np.concatenate([np.frombuffer(processor.Process10ms(pcm[at:at + 160].tobytes()).audio, np.int16) for at in range(0, len(pcm) - 159, 160)])
    return process


# How a peer runs, and at how many times the rate.
PEERS = {"RNNoise": (rnnoise, 6), "WebRTC, level 2 of 4": (webrtc(2), 2), "WebRTC, level 4 of 4": (webrtc(4), 2)}


def peer(process, times, before, x, truth):
    """What a peer makes of x after it has heard what was before, in time with the truth."""
    up = signal.resample_poly(np.concatenate([before, x]), times, 1)
    scale = LOUD / np.abs(up).max()
    out = process(np.round(up * scale).astype(np.int16)).astype(float) / scale
    out = signal.resample_poly(signal.resample_poly(out, 1, times), FINE, 1)[FINE * len(before):]
    out = np.concatenate([out, np.zeros(FINE * len(truth))])
    late = (out[d:d + FINE * len(truth):FINE] for d in range(60 * RATE * FINE // 1000))
    return max(late, key=lambda y: (y @ truth) / np.linalg.norm(y))


def figures(estimate, truth):
    same = estimate * (truth @ estimate) / (estimate @ estimate)
    peak = max(np.abs(same).max(), np.abs(truth).max())
    return si_sdr(estimate, truth), sdr(estimate, truth), pesq(RATE, truth / peak, same / peak, "nb"), stoi(truth, estimate, RATE)


def main():
    data, program = sys.argv[1:3]
    voices, people = read_folder(data, "speech"), list(read_folder(data, "speech_digits").values())
    count = int(sys.argv[3]) if len(sys.argv) > 3 else len(voices)
    speaker = lambda path: path if path.endswith("_kt.wav") else path.rsplit("_", 1)[-1]
    cut = lambda part: [x[:len(x) * 2 // 3] if part == 0 else x[len(x) * 2 // 3:] for x in people]
    # Seed 11 is learned from, seed 12 is heard.
    noises = {"fan": fan, "knocks": knocks, "talk": lambda n, seed: talk(cut(seed - 11), n, seed)}
    n = len(next(iter(voices.values()))) * 2 // 3
    rows = {}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(work, program)
        for noise, make in noises.items():
            bench.train([make(n, 11)], 64, noise)
        for path in list(voices)[:count]:
            before, truth = voices[path][:n], unit(voices[path][n:])
            bench.train([before], 64, "own")
            bench.train([voice[:n] for other, voice in voices.items() if speaker(other) != speaker(path)], 128, "others")
            for name, (process, times) in PEERS.items():
                rows.setdefault(("clean", name), []).append(figures(peer(process, times, before, truth, truth), truth))
            for noise, make in noises.items():
                sound = unit(make(len(before) + len(truth), 12))
                earlier, noisy = before + sound[:n], truth + unit(sound[n:])
                write(bench.file("noisy.wav"), noisy)
                estimates = {"noisy": noisy}
                estimates |= {name: peer(process, times, earlier, noisy, truth) for name, (process, times) in PEERS.items()}
                for voice in ("own", "others"):
                    bench.merge([voice, noise], "both.spk")
                    for label, more in ((voice, []), (voice + ", 15 dB", ["--reduction", "15"])):
                        bench.run("denoise", bench.file("both.spk"), bench.file("noisy.wav"), bench.file("out.wav"), *more)
                        estimates["Spikelet, " + label] = read(bench.file("out.wav"))
                for name, estimate in estimates.items():
                    rows.setdefault((noise, name), []).append(figures(estimate, truth))
    print("| noise | method | SI-SDR | SDR | PESQ | STOI |\n|---|---|--:|--:|--:|--:|")
    for (noise, name), values in rows.items():
        direct, filtered, quality, clear = np.mean(values, axis=0)
        print(f"| {noise} | {name} | {direct:.1f} | {filtered:.1f} | {quality:.2f} | {clear:.3f} |")


main()
