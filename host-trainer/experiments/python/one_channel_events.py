"""Which sound is on, and whether a sound is unusual, by models of one channel. Prints two Markdown tables.

    python3 one_channel_events.py DATA target/release/spikelet

DATA has the folders speech_digits and music (WAV, 8 kHz). Needs numpy and scipy.

Events: people say digits, music plays, an alarm sounds; each comes and goes by itself, at levels from -6 to 6 dB. Speech is learned from four people, and
the scenes have two others; of music the first two thirds are learned, the scenes have the rest; the alarm in the scenes has another tempo. A source is on in
a frame where its own power is above a hundredth of its mean. F1 is of the decision at 0.5; the calibration error is the mean distance of the probability
from the frequency, in ten bins.

Anomalies: a fan and six people who talk, each learned from 40 s and calibrated with 200 s more; the rates are of another 200 s. Detected: frames above the
threshold for 1 % while knocks of a machine are added, 6 dB below.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io.wavfile as wavfile

ARGUMENTS = sys.argv[1:]
RATE = 8000
LENGTH = 512


def unit(x):
    return x / x.std()


def read(path):
    rate, x = wavfile.read(path)
    assert rate == RATE and x.ndim == 1, path
    return unit(x.astype(float))


def write(path, x):
    wavfile.write(path, RATE, (0.05 * x).astype(np.float32))


def alarm(n, tempo):
    t = np.arange(n) / RATE
    pitch = np.where((t * tempo).astype(int) % 2 == 0, 980.0, 1310.0)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    return unit(np.sin(phase) + 0.4 * np.sin(3 * phase))


def coloured(n, random, slope):
    f = np.fft.rfftfreq(n, 1 / RATE)
    return unit(np.fft.irfft((random.normal(size=len(f)) + 1j * random.normal(size=len(f))) * np.maximum(f, 40) ** (-slope / 2), n))


def fan(n, seed):
    random = np.random.default_rng(seed)
    phase = 2 * np.pi * 92 * np.arange(n) / RATE + 0.3 * np.cumsum(random.normal(size=n)) / np.sqrt(RATE)
    return unit(sum(np.cos(k * phase + k) / k for k in range(1, 9)) + 1.5 * coloured(n, random, 0.8))


def knocks(n, seed):
    random, x, t, at = np.random.default_rng(seed), np.zeros(n), np.arange(1600) / RATE, 0
    pitches = np.random.default_rng(77).uniform(250, 3400, (5, 5))
    while True:
        at += int(RATE * (0.03 + random.exponential(0.12)))
        if at >= n - 1600:
            return unit(x)
        for pitch in pitches[random.integers(5)]:
            x[at:at + 1600] += np.exp(-t / 0.03) * np.sin(2 * np.pi * pitch * t + random.uniform(0, 6.28))


def talk(people, n, seed):
    random = np.random.default_rng(seed)
    return unit(sum(np.resize(np.roll(x, random.integers(len(x))), n) for x in people))


def on_and_off(n, random, on, off):
    """1 and 0 for about so many seconds in turn."""
    gate, at, is_on = np.zeros(n), 0, random.uniform() < 0.5
    while at < n:
        end = at + int(RATE * random.uniform(0.5, 1.5) * (on if is_on else off))
        gate[at:end], at, is_on = is_on, end, not is_on
    return gate


def main():
    data, spikelet = ARGUMENTS[0], os.path.abspath(ARGUMENTS[1])
    people = [read(path) for path in sorted(glob.glob(os.path.join(data, "speech_digits", "*.wav")))]
    music = [read(path) for path in sorted(glob.glob(os.path.join(data, "music", "*.wav")))]
    with tempfile.TemporaryDirectory() as work:
        file = lambda name: os.path.join(work, name)

        def run(*words):
            done = subprocess.run([spikelet, *words], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            return done.stdout

        def train(sounds, latents, name):
            os.makedirs(file(name), exist_ok=True)
            for number, sound in enumerate(sounds):
                write(os.path.join(file(name), f"{number}.wav"), sound)
            run("train", "--model", "mca", "--transform", "spectrum", "--latents", str(latents), file(name), "--out", file(name + ".spk"))

        train(people[:4], 64, "speech")
        train([x[:len(x) * 2 // 3] for x in music], 64, "music")
        train([alarm(20 * RATE, 3.0)], 16, "alarm")
        names = ["speech", "music", "alarm"]
        run("merge", *(file(name + ".spk") for name in names), "--names", ",".join(names), "--encoding", "i8", "--out", file("scene.spk"))
        found, truth = [], []
        for scene in range(4):
            random, n = np.random.default_rng(100 + scene), 40 * RATE
            cut = [x[len(x) * 2 // 3:] for x in music]
            sources = [np.resize(people[4 + scene % 2], n), np.resize(cut[scene // 2], n), alarm(n, 4.0)]
            gates = [on_and_off(n, random, *times) for times in ((3, 3), (6, 4), (2, 6))]
            sources = [10 ** (random.uniform(-6, 6) / 20) * unit(x) * gate for x, gate in zip(sources, gates)]
            write(file("scene.wav"), sum(sources) + 1e-3 * random.normal(size=n))
            run("infer", file("scene.spk"), file("scene.wav"), "--out-dir", file("events"))
            with open(os.path.join(file("events"), "events.csv")) as table:
                rows = [[float(x) for x in row] for row in list(csv.reader(table))[1:]]
            for row in rows:
                middle = int(row[0] * RATE)
                window = slice(max(0, middle - LENGTH // 4), middle + LENGTH // 4)
                truth.append([np.mean(x[window] ** 2) > 0.01 * np.mean(x[x != 0] ** 2) for x in sources])
                found.append(row[1:4])
        found, truth = np.array(found), np.array(truth)
        print("| source | on | precision | recall | F1 | calibration error |\n|---|--:|--:|--:|--:|--:|")
        for k, name in enumerate(names):
            p, t = found[:, k], truth[:, k]
            hit, said = np.sum((p > 0.5) & t), np.sum(p > 0.5)
            bins = np.minimum((p * 10).astype(int), 9)
            error = sum(abs(p[bins == b].mean() - t[bins == b].mean()) * np.mean(bins == b) for b in range(10) if np.any(bins == b))
            precision, recall = hit / max(said, 1), hit / max(t.sum(), 1)
            print(f"| {name} | {100 * t.mean():.0f} % | {precision:.2f} | {recall:.2f} | {2 * precision * recall / max(precision + recall, 1e-9):.2f} | {error:.2f} |")

        print("\n| usual sound | promised | observed | detected |\n|---|--:|--:|--:|")
        for name, make in (("fan", fan), ("talk", lambda n, seed: talk(people, n, seed))):
            train([make(40 * RATE, 1)], 32, name)
            write(file("normal.wav"), make(200 * RATE, 2))
            usual = make(200 * RATE, 3)
            write(file("held.wav"), usual)
            facts = json.loads(run("eval", file(name + ".spk"), file("held.wav"), "--calibrate", file("normal.wav"), "--out", file("alarm-" + name + ".spk"), "--json"))
            write(file("odd.wav"), (usual + 0.5 * knocks(200 * RATE, 4))[:40 * RATE])
            odd = json.loads(run("eval", file("alarm-" + name + ".spk"), file("odd.wav"), "--json"))
            for rate, same in zip(facts["rates"], odd["rates"]):
                if rate["promised"] <= 0.11:
                    print(f"| {name} | {100 * rate['promised']:.2g} % | {100 * rate['observed']:.2g} % | {100 * same['observed']:.0f} % |")


main()
