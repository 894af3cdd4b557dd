"""Other methods on the pictures of the experiment `pictures`: PSNR in dB as JSON.

    python pictures_peers.py noise PICTURE.npy CLEAN.npy SIGMA       BM3D, which is told sigma
    python pictures_peers.py holes PICTURE.npy CLEAN.npy MASK.npy    biharmonic inpainting, and dictionaries with matching pursuit

Matching pursuit over the known pixels of every second patch, to an error of 3 grey values, with a dictionary that SPAMS learned from patches of the
picture after biharmonic inpainting; then the same from patches of its own result. Of patches of 8 x 8 and 12 x 12 pixels the better is taken, by the truth.
Known pixels stay as they are. Where packages are missing, the script installs them into a virtual environment of its own
(target/peers-pictures) and runs there, on one core.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import venv

PACKAGES = {"numpy": "numpy", "scipy": "scipy", "skimage": "scikit-image", "spams": "spams-bin", "bm3d": "bm3d"}
PLACE = pathlib.Path(__file__).resolve().parents[3] / "target/peers-pictures"


def again_with_packages():
    python = PLACE / "bin/python"
    if not python.exists():
        venv.create(PLACE, with_pip=True)
    packages = [python, "-m", "pip", "install", "--quiet", *PACKAGES.values()]
    subprocess.run(packages, check=True, stdout=sys.stderr)
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=os.environ | one).returncode)


if any(importlib.util.find_spec(name) is None for name in PACKAGES):
    again_with_packages()

import numpy as np


def psnr(result, clean):
    return 10 * np.log10(255.0**2 / np.mean((result - clean) ** 2))


def patches(picture, side, step=1):
    return np.lib.stride_tricks.sliding_window_view(picture, (side, side))[::step, ::step]


def codes(values, known, dictionary, most, error):
    """The patch that as few atoms as possible explain where it is known."""
    seen = dictionary[known]
    norms = np.maximum(np.linalg.norm(seen, axis=0), 1e-6)
    target, chosen = values[known], []
    rest = target
    weights = np.zeros(0)
    while len(chosen) < most and rest @ rest > error**2 * len(rest):
        chosen.append(int(np.argmax(np.abs(rest @ seen) / norms)))
        weights = np.linalg.lstsq(seen[:, chosen], target, rcond=None)[0]
        rest = target - seen[:, chosen] @ weights
    return dictionary[:, chosen] @ weights


def pursuit(picture, missing, first, side):
    import spams

    known, result = ~missing, first
    for _ in range(2):
        columns = patches(result, side).reshape(-1, side * side).T
        columns = np.asfortranarray(columns - columns.mean(0))
        some = np.random.default_rng(1).permutation(columns.shape[1])[:20000]
        settings = {"K": 256, "lambda1": 5, "mode": 3, "iter": 100, "batchsize": 512, "numThreads": 1, "verbose": False}
        dictionary = spams.trainDL(np.asfortranarray(columns[:, some]), **settings)
        # The mean of a patch is an atom of its own.
        dictionary = np.hstack([np.full((side * side, 1), 1.0 / side), dictionary])
        total, count = np.zeros(picture.shape), np.zeros(picture.shape)
        values, seen = patches(picture, side, 2), patches(known, side, 2)
        for i, j in np.ndindex(*values.shape[:2]):
            if (here := seen[i, j].ravel()).any():
                most = max(1, int(here.sum()) // 4)
                patch = codes(values[i, j].ravel(), here, dictionary, most, 3.0)
                place = np.s_[2 * i : 2 * i + side, 2 * j : 2 * j + side]
                total[place] += patch.reshape(side, side)
                count[place] += 1
        result = np.where(known | (count == 0), np.where(known, picture, first), total / np.maximum(count, 1))
    return result


def main():
    what, picture, clean, other = sys.argv[1:5]
    picture, clean = np.load(picture).astype(float), np.load(clean).astype(float)
    if what == "noise":
        import bm3d

        print(json.dumps({"bm3d": psnr(bm3d.bm3d(picture, float(other)), clean)}))
        return
    from skimage.restoration import inpaint_biharmonic

    missing = np.load(other) != 0
    smooth = inpaint_biharmonic(np.where(missing, 0.0, picture) / 255, missing) * 255
    coded = [psnr(pursuit(picture, missing, smooth, side), clean) for side in (8, 12)]
    print(json.dumps({"biharmonic": psnr(smooth, clean), "pursuit": max(coded)}))


main()
