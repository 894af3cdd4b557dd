"""Voices in noise on one microphone: Spikelet beside RNNoise and WebRTC's suppressor. Prints a Markdown table.

    python3 one_channel_peers.py DATA target/release/spikelet [VOICES]

DATA has the folders speech and speech_digits (WAV, 8 kHz); VOICES is how many voices are tried [all]. Noises are a fan, knocks of a machine, and
six people who talk at once, each as loud as the voice. Spikelet learns the noise from another recording of it, and the voice from the
first two thirds of its own recording ("own") or of those of all other speakers ("others"); its streams are those of a device, spectra in bytes.
The other two know nothing of the noise and run at 48 and 16 kHz, to which the sound is resampled; of them the delay is taken out that suits them best.
"clean" is what they do to the voice alone. SI-SDR in dB, PESQ (narrow band, 1 to 4.5), STOI (0 to 1), means over voices.

Packages that are missing are installed into a virtual environment beside this file's temporary models.
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

import glob
import warnings

import numpy as np
import scipy.io.wavfile as wavfile
import scipy.signal as signal
from pesq import pesq
from pyrnnoise import RNNoise
from pystoi import stoi
from webrtc_noise_gain import AudioProcessor

warnings.filterwarnings("ignore")
RATE = 8000


def unit(x):
    return x / x.std()


def read(path):
    rate, x = wavfile.read(path)
    assert rate == RATE and x.ndim == 1, path
    return unit(x.astype(float))


def write(path, x):
    wavfile.write(path, RATE, (0.05 * x).astype(np.float32))


def coloured(n, random, slope):
    f = np.fft.rfftfreq(n, 1 / RATE)
    spectrum = (random.normal(size=len(f)) + 1j * random.normal(size=len(f))) * np.maximum(f, 1) ** (-slope / 2) * (f > 40)
    return unit(np.fft.irfft(spectrum, n))


def fan(n, seed):
    random = np.random.default_rng(seed)
    waver = unit(signal.lfilter(*signal.butter(1, 0.5 / (RATE / 2)), random.normal(size=n)))
    phase = 2 * np.pi * np.cumsum(92 * (1 + 0.006 * waver)) / RATE
    blades = sum(a * np.cos(k * phase + k) for k, a in enumerate([1, 0.8, 0.3, 0.5, 0.2, 0.25, 0.1, 0.15, 0.08, 0.1], 1))
    air = coloured(n, random, 0.8)
    air = 0.4 * air + 1.2 * signal.lfilter(*signal.iirpeak(420, 3, RATE), air) + 1.5 * signal.lfilter(*signal.iirpeak(1300, 2, RATE), air)
    return unit(0.8 * unit(blades) + unit(air))


def knocks(n, seed):
    parts = np.random.default_rng(77)
    pitch, fade, loud = parts.uniform(250, 3400, (5, 5)), parts.uniform(0.006, 0.06, (5, 5)), parts.uniform(0.3, 1, (5, 5))
    random, x, t, at = np.random.default_rng(seed), np.zeros(n), np.arange(2400) / RATE, 0
    while True:
        at += int(RATE * (0.03 + random.exponential(0.12)))
        if at >= n - 2400:
            return unit(unit(x) + 0.1 * coloured(n, random, 1))
        i, strength = random.integers(5), np.exp(random.normal(0, 0.5))
        for j in range(5):
            x[at:at + 2400] += strength * loud[i, j] * np.exp(-t / fade[i, j]) * np.sin(2 * np.pi * pitch[i, j] * t + random.uniform(0, 6.28))


def talk(people, part, n, seed):
    random = np.random.default_rng(seed)
    cut = [x[:len(x) * 2 // 3] if part == 0 else x[len(x) * 2 // 3:] for x in people]
    rolled = [np.resize(np.roll(x, random.integers(len(x))), n) for x in cut]
    return unit(unit(sum(rolled)) + 0.35 * coloured(n, random, 1))


def si_sdr(estimate, truth):
    along = (estimate @ truth) / (truth @ truth) * truth
    rest = estimate - along
    return 10 * np.log10((along @ along) / (rest @ rest + 1e-12))


def rnnoise(x):
    up = signal.resample_poly(x, 6, 1)
    peak = np.abs(up).max()
    pcm = (up / peak * 16000).astype(np.int16)
    frames = [np.asarray(frame).reshape(-1) for _, frame in RNNoise(sample_rate=48000).denoise_chunk(pcm[None], partial=True)]
    return signal.resample_poly(np.concatenate(frames).astype(float), 1, 6) * peak / 16000


def webrtc(x):
    up = signal.resample_poly(x, 2, 1)
    peak = np.abs(up).max()
    pcm = (up / peak * 16000).astype(np.int16)
    processor = AudioProcessor(0, 3)
    out = [np.frombuffer(processor.Process10ms(pcm[at:at + 160].tobytes()).audio, np.int16) for at in range(0, len(pcm) - 159, 160)]
    return signal.resample_poly(np.concatenate(out).astype(float), 1, 2) * peak / 16000


def in_time(estimate, truth):
    """Without the delay of up to 60 ms that suits it best."""
    estimate = np.concatenate([estimate, np.zeros(len(truth))])
    return max((estimate[d:d + len(truth)] for d in range(0, 480)), key=lambda x: si_sdr(x, truth))


def figures(estimate, truth):
    peak = max(np.abs(estimate).max(), np.abs(truth).max())
    return si_sdr(estimate, truth), pesq(RATE, truth / peak, estimate / peak, "nb"), stoi(truth, estimate, RATE)


def main():
    data, spikelet = sys.argv[1], os.path.abspath(sys.argv[2])
    paths = sorted(glob.glob(os.path.join(data, "speech", "*.wav")))
    people = [read(path) for path in sorted(glob.glob(os.path.join(data, "speech_digits", "*.wav")))]
    speaker = lambda path: path if path.endswith("_kt.wav") else path.rsplit("_", 1)[-1]
    voices = {path: read(path) for path in paths}
    count = int(sys.argv[3]) if len(sys.argv) > 3 else len(paths)
    rows = {}
    with tempfile.TemporaryDirectory() as work:
        file = lambda name: os.path.join(work, name)

        def run(*words):
            done = subprocess.run([spikelet, *words], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)

        def train(source, latents, name):
            run("train", "--model", "mca", "--transform", "spectrum", "--latents", str(latents), source, "--out", file(name))

        n = len(voices[paths[0]]) * 2 // 3
        for noise, make in (("fan", fan), ("knocks", knocks), ("talk", lambda n, seed: talk(people, seed - 11, n, seed))):
            write(file(noise + ".wav"), make(n, 11))
            train(file(noise + ".wav"), 64, noise + ".spk")
        for path in paths[:count]:
            truth = unit(voices[path][n:])
            write(file("own.wav"), voices[path][:n])
            train(file("own.wav"), 64, "own.spk")
            folder = file("folder")
            os.makedirs(folder, exist_ok=True)
            for old in glob.glob(os.path.join(folder, "*")):
                os.remove(old)
            for other in paths:
                if speaker(other) != speaker(path):
                    write(os.path.join(folder, os.path.basename(other)), voices[other][:n])
            train(folder, 128, "others.spk")
            write(file("clean.wav"), truth)
            for name, process in (("RNNoise", rnnoise), ("WebRTC", webrtc)):
                rows.setdefault(("clean", name), []).append(figures(in_time(process(truth), truth), truth))
            for noise, make in (("fan", fan), ("knocks", knocks), ("talk", lambda n, seed: talk(people, seed - 11, n, seed))):
                noisy = truth + unit(make(len(truth), 12))
                write(file("noisy.wav"), noisy)
                estimates = {"noisy": noisy, "RNNoise": in_time(rnnoise(noisy), truth), "WebRTC": in_time(webrtc(noisy), truth)}
                for voice in ("own", "others"):
                    run("merge", file(voice + ".spk"), file(noise + ".spk"), "--names", "voice,noise", "--encoding", "i8", "--out", file("both.spk"))
                    for label, more in ((voice, []), (voice + ", 15 dB", ["--reduction", "15"])):
                        run("denoise", file("both.spk"), file("noisy.wav"), file("out.wav"), *more)
                        estimates["Spikelet, " + label] = read(file("out.wav"))
                for name, estimate in estimates.items():
                    rows.setdefault((noise, name), []).append(figures(estimate, truth))
    print("| noise | method | SI-SDR | PESQ | STOI |\n|---|---|--:|--:|--:|")
    for (noise, name), values in rows.items():
        sdr, quality, clear = np.mean(values, axis=0)
        print(f"| {noise} | {name} | {sdr:.1f} | {quality:.2f} | {clear:.3f} |")


main()
