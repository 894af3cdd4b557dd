"""AuxIVA and ILRMA on rooms as WAV files: SI-SDR of each source's image at the first microphone, in dB, as JSON.

    python rooms_peers.py ROOM...        each a folder with mixture.wav and sources.wav

Both need as many microphones as sources. Where pyroomacoustics is missing, the script installs it into a virtual environment of its own
(target/peers-rooms) and runs there, on one core. STFT 1024/256 with Hann windows at 8 kHz,
as the model has it; 60 and 100 iterations; each source projected back to the first microphone.
"""
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys
import venv
import warnings

PACKAGES = ["numpy", "scipy", "pyroomacoustics"]
PLACE = pathlib.Path(__file__).resolve().parents[3] / "target/peers-rooms"


def again_with_packages():
    python = PLACE / "bin/python"
    if not python.exists():
        venv.create(PLACE, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, stdout=sys.stderr)
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=os.environ | one).returncode)


if any(importlib.util.find_spec(name) is None for name in PACKAGES):
    again_with_packages()

import numpy as np
import pyroomacoustics as pra
import scipy.io.wavfile as wavfile

warnings.filterwarnings("ignore")


def si_sdr(estimate, truth):
    along = (estimate @ truth) / (truth @ truth) * truth
    rest = estimate - along
    return 10 * np.log10((along @ along) / (rest @ rest))


def best_pairs(estimates, truths):
    table = [[si_sdr(estimate, truth) for estimate in estimates] for truth in truths]
    orders = itertools.permutations(range(len(truths)))
    return max(([table[k][order[k]] for k in range(len(truths))] for order in orders), key=sum)


def separate(mixture, method, length, **settings):
    hop = length // 4
    window = pra.hann(length)
    back = pra.transform.stft.compute_synthesis_window(window, hop)
    spectra = pra.transform.stft.analysis(mixture, length, hop, win=window).astype(complex)
    np.random.seed(0)
    filters = method(spectra.copy(), proj_back=False, return_filters=True, **settings)[1]
    images = np.einsum("fh,fhj,tfj->tfh", np.linalg.inv(filters)[:, 0], filters, spectra)
    return pra.transform.stft.synthesis(images, length, hop, win=back)[length - hop:].T


def main(folders):
    results = []
    for folder in folders:
        (rate, mixture), (_, sources) = (wavfile.read(f"{folder}/{name}.wav") for name in ("mixture", "sources"))
        mixture, sources = mixture.astype(float), sources.astype(float).T
        length = 2 ** round(np.log2(0.128 * rate))
        row = {}
        if len(sources) == mixture.shape[1]:
            methods = [
                ("auxiva", pra.bss.auxiva, {"n_iter": 60}),
                ("ilrma", pra.bss.ilrma, {"n_iter": 100, "n_components": 2}),
            ]
            for name, method, settings in methods:
                parts = separate(mixture, method, length, **settings)
                samples = min(parts.shape[1], sources.shape[1])
                row[name] = [float(db) for db in best_pairs(parts[:, :samples], sources[:, :samples])]
        results.append(row)
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
