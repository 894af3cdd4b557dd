"""Voices, music and noises that no setting has seen: synthetic speech in noise, and what comes of a source that is not there. Prints three Markdown tables.

    python3 one_channel_unseen.py DATA target/release/spikelet

DATA has the folders speech and speech_digits (WAV, 8 kHz), from which the voice is learned (128 latents). Needs espeak-ng, sox, numpy and scipy.

Eight voices of espeak-ng read a text. Music is plucked chords; noises are a vacuum cleaner, rain, brown noise and a drill, made by sox; the first two thirds of each
are learned from (64 latents), the rest is mixed with the voices. Gain in SI-SDR in dB, voice / other: at 0 dB the mean of all voices, at other levels of two.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io.wavfile as wavfile

from one_channel_common import RATE, Bench, read, read_folder, unit, write

TEXT = (
    "The committee met again on Thursday evening to decide what should be done about the old bridge. Nobody could say who had signed the papers, or why the "
    "money was gone. Seven engineers walked along the river, measured every stone, and wrote a long report that only a few people ever read. Later the mayor "
    "thanked them all and asked for patience until spring."
)
VOICES = ["en+m3", "en+f2", "de+f4", "fr+m7", "es+m1", "it+f5", "pl", "pt-br+f1"]
CHORDS = [["C3", "E3", "G3", "C4"], ["A2", "C3", "E3", "A3"], ["F2", "A2", "C3", "F3"], ["G2", "B2", "D3", "G3"]]
NOISES = {
    "vacuum": "synth 40 sawtooth 187 synth 40 pinknoise mix tremolo 7 20 lowpass 3000",
    "rain": "synth 40 whitenoise highpass 800",
    "brown": "synth 40 brownnoise highpass 60",
    "drill": "synth 40 square 233 synth 40 sine fmod 1861 synth 40 whitenoise mix highpass 300 tremolo 23 60",
}
LEVELS = [-10, -5, 0, 5, 10]


def sox(*words):
    subprocess.run(["sox", "-V1", "-R", *words], check=True)


def sounds(folder):
    """Voices, and other sounds by name."""
    file = lambda name: os.path.join(folder, name)
    voices, others = [], {}
    for number, voice in enumerate(VOICES):
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(140 + 5 * number), "-w", file("raw.wav"), TEXT], check=True)
        sox(file("raw.wav"), "-r", str(RATE), "-c", "1", "-b", "16", file("voice.wav"), "norm", "-3")
        voices.append(read(file("voice.wav")))
    chords = []
    for number in range(12):
        *plucked, held = CHORDS[number % 4]
        notes = [word for note in plucked for word in ("pl", note)] + ["sin", held]
        chords.append(file(f"chord{number}.wav"))
        sox("-n", "-r", str(RATE), "-c", "1", "-b", "16", chords[-1], "synth", "2", *notes, "remix", "-", "fade", "0.02", "2", "0.2", "tremolo", str(3 + number % 3), "40", "norm", "-3")
    sox(*chords, file("music.wav"))
    others["music"] = read(file("music.wav"))
    for name, words in NOISES.items():
        sox("-n", "-r", str(RATE), "-c", "1", "-b", "16", file("noise.wav"), *words.split(), "norm", "-3")
        others[name] = read(file("noise.wav"))
    return voices, others


def si_sdr(estimate, truth):
    part = (estimate @ truth) / (truth @ truth) * truth
    return 10 * np.log10((part @ part) / ((estimate - part) @ (estimate - part) + 1e-20))


def main():
    data, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(work, program)
        voices, others = sounds(work)
        seen = {**read_folder(data, "speech"), **read_folder(data, "speech_digits")}
        bench.train(seen.values(), 128, "voice")
        for name, x in others.items():
            bench.train([x[: len(x) * 2 // 3]], 64, name)
            bench.merge(["voice", name], f"both-{name}.spk", "--names", "voice,other")

        def separated(name, x):
            write(bench.file("mix.wav"), x)
            bench.run("separate", bench.file(f"both-{name}.spk"), bench.file("mix.wav"), "--out-dir", bench.file("out"), "--format", "f32")
            return [wavfile.read(bench.file(f"out/{part}.wav"))[1].astype(float) for part in ("voice", "other")]

        heard = {name: x[len(x) * 2 // 3 :] for name, x in others.items()}
        print("| other | " + " | ".join(f"{level:+d} dB" for level in LEVELS) + " |\n|---|" + "--:|" * len(LEVELS))
        for name, other in heard.items():
            cells = []
            for level in LEVELS:
                gains = []
                for voice in voices if level == 0 else (voices[1], voices[3]):
                    n = min(len(voice), len(other))
                    truths = [10 ** (level / 20) * unit(voice[:n]), unit(other[:n])]
                    parts = separated(name, sum(truths))
                    gains.append([si_sdr(part[:n], truth) - si_sdr(sum(truths), truth) for part, truth in zip(parts, truths)])
                cells.append("%.1f / %.1f" % tuple(np.mean(gains, 0)))
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)

        print("\n| other | voice absent: its output (dB) | other absent: its output (dB) |\n|---|--:|--:|")
        level = lambda x: 10 * np.log10(np.mean(x[RATE:] ** 2) + 1e-20)
        for name, other in heard.items():
            voice = voices[1][: len(other)]
            ghosts = [level(separated(name, x)[part]) - level(0.05 * x) for part, x in enumerate([other, voice])]
            print(f"| {name} | " + " | ".join(f"{ghost:.1f}" for ghost in ghosts) + " |", flush=True)

        print("\n| samples clipped | gain, voice / other |\n|--:|--:|")
        n = min(len(voices[1]), len(heard["vacuum"]))
        truths = [unit(voices[1][:n]), unit(heard["vacuum"][:n])]
        for most in (20, 3, 1, 0.33):
            x = np.clip(sum(truths), -most, most)
            parts = separated("vacuum", x)
            cells = " / ".join(f"{si_sdr(part[:n], truth) - si_sdr(x, truth):.1f}" for part, truth in zip(parts, truths))
            print(f"| {100 * np.mean(np.abs(x) >= most):.0f} % | {cells} |", flush=True)


main()
