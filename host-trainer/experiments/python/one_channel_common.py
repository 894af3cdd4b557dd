"""What one_channel_peers.py and one_channel_events.py share: sounds, WAV files of 8 kHz, and the program under test."""
import glob
import os
import subprocess
import sys

import numpy as np
import scipy.io.wavfile as wavfile
import scipy.signal as signal

RATE = 8000


def unit(x):
    return x / x.std()


def read(path):
    rate, x = wavfile.read(path)
    assert rate == RATE and x.ndim == 1, path
    return unit(x.astype(float))


def read_folder(*parts):
    """Paths and sounds of all recordings in a folder, by name."""
    return {path: read(path) for path in sorted(glob.glob(os.path.join(*parts, "*.wav")))}


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


def talk(people, n, seed):
    """People who talk at once, each from another place of the recording, and from another one each time it is over."""
    random = np.random.default_rng(seed)
    rolled = [np.concatenate([np.roll(x, random.integers(len(x))) for _ in range(n // len(x) + 1)])[:n] for x in people]
    return unit(unit(sum(rolled)) + 0.35 * coloured(n, random, 1))


class Bench:
    """A folder of models and recordings, and the program that makes and uses them."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, os.path.abspath(program)

    def file(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout

    def train(self, sounds, latents, name):
        """Learns NAME.spk from a folder of these sounds."""
        folder = self.file(name)
        os.makedirs(folder, exist_ok=True)
        for old in glob.glob(os.path.join(folder, "*")):
            os.remove(old)
        for number, sound in enumerate(sounds):
            write(os.path.join(folder, f"{number}.wav"), sound)
        self.run("train", "--model", "mca", "--transform", "spectrum", "--latents", str(latents), "--threads", "1", folder, "--out", folder + ".spk")

    def merge(self, names, out, *more):
        self.run("merge", *(self.file(name + ".spk") for name in names), "--encoding", "i8", "--out", self.file(out), *more)
