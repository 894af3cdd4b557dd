"""Gaussian mixtures by `spikelet train --model gmm` and by scikit-learn: likelihood of points that were not learned from, and time.

    python mixtures_peers.py [--quick] [PROGRAM]       PROGRAM is the command spikelet [default: target/release/spikelet]

Each set has C clusters with variances of their own in D dimensions; half of the points are learned from, both halves are scored. Both programs use
their own starts, one each, and their own rule to stop; `early` is spikelet with scikit-learn's rule, less than 0.001 nats gained per point. There are as many
components as clusters, with variances of their own (`diag`) or one covariance for all (`tied`), and at most 100 iterations. Times are CPU seconds on one core. The second table has a fixed number of
iterations, so that the cost of one can be compared as C grows, with all components and with C' of them selected for each point.

Where scikit-learn is missing, the script installs it into a virtual environment of its own (target/peers-mixtures) and runs there.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import venv
import warnings

PACKAGES = {"numpy": "numpy", "sklearn": "scikit-learn"}
ROOT = pathlib.Path(__file__).resolve().parents[3]
PLACE = ROOT / "target/peers-mixtures"
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def again_with_packages():
    python = PLACE / "bin/python"
    if not python.exists():
        venv.create(PLACE, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES.values()], check=True, stdout=sys.stderr)
    sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=os.environ | ONE).returncode)


if any(importlib.util.find_spec(name) is None for name in PACKAGES):
    again_with_packages()
if any(os.environ.get(name) != value for name, value in ONE.items()):
    sys.exit(subprocess.run([sys.executable, *sys.argv], env=os.environ | ONE).returncode)

import numpy as np
from sklearn.mixture import GaussianMixture

warnings.filterwarnings("ignore")
NOISE = {"diag": "components", "tied": "full"}


def cpu(work, who):
    """What work returns, and the CPU seconds that it took: of this process, or of one that it starts."""
    used = lambda: sum(resource.getrusage(who)[:2])
    before = used()
    result = work()
    return result, used() - before


def clusters(count, dims, points, seed, form):
    """Two halves of points of so many clusters, which overlap."""
    rng = np.random.default_rng(seed)
    means = 2.0 * rng.standard_normal((count, dims))
    scales = 0.5 + rng.random((count, dims)) if form == "diag" else np.ones((count, dims))
    weights = rng.dirichlet(np.full(count, 3.0))
    which = rng.choice(count, size=2 * points, p=weights)
    data = means[which] + scales[which] * rng.standard_normal((2 * points, dims))
    if form == "tied":
        data = data @ (np.eye(dims) + 0.3 * rng.standard_normal((dims, dims)))
    return data[:points], data[points:]


def score(parameters, data, form):
    """Mean ln p of points under what spikelet learned, by scikit-learn's own formulas."""
    means = np.array(parameters["w"]).T
    weights = np.array(parameters["pi"])
    sigma2 = np.array(parameters["sigma2"])
    mixture = GaussianMixture(len(means), covariance_type=form)
    mixture.weights_, mixture.means_ = weights / weights.sum(), means
    mixture.covariances_ = sigma2.T if form == "diag" else sigma2
    if form == "diag":
        mixture.precisions_cholesky_ = 1 / np.sqrt(mixture.covariances_)
    else:
        mixture.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(sigma2)).T
    return mixture.score(data)


def spikelet(program, data, form, count, seed, *flags):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/data.npy", data)
        command = [program, "train", "--model", "gmm", "--latents", str(count), "--noise", NOISE[form], "--threads", "1"]
        command += ["--seed", str(seed), *flags, f"{folder}/data.npy", "--out", f"{folder}/m.spk"]
        _, seconds = cpu(lambda: subprocess.run(command, check=True, capture_output=True), resource.RUSAGE_CHILDREN)
        return json.load(open(f"{folder}/m.json"))["parameters"], seconds


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def likelihoods(program, quick):
    sets = [(8, 4, 2000, 3), (64, 16, 10000, 3)] if not quick else [(4, 3, 500, 1)]
    print("ln p per point, of points learned from and of new ones; CPU seconds\n")
    row("covariances", "C", "D", "N", "set", "scikit-learn", "new", "seconds", "spikelet", "new", "seconds", "early", "new", "seconds")
    row(*["---"] * 14)
    for form in NOISE:
        for count, dims, points, seeds in sets:
            for seed in range(seeds):
                seen, new = clusters(count, dims, points, seed, form)
                peer = GaussianMixture(count, covariance_type=form, random_state=seed)
                peer, seconds = cpu(lambda: peer.fit(seen), resource.RUSAGE_SELF)
                cells = [f"{peer.score(seen):.4f}", f"{peer.score(new):.4f}", f"{seconds:.2f}"]
                early = ["--tolerance", str(1e-3 / abs(peer.score(seen)))]
                for rule in [[], early]:
                    own, seconds = spikelet(program, seen, form, count, seed + 1, "--restarts", "1", *rule)
                    cells += [f"{score(own, seen, form):.4f}", f"{score(own, new, form):.4f}", f"{seconds:.2f}"]
                row(form, count, dims, points, seed, *cells)


def times(program, quick):
    points, dims, iterations = (20000, 16, 20) if not quick else (1000, 4, 3)
    sizes = [16, 64, 256, 1024] if not quick else [8, 16]
    print(f"\nN = {points}, D = {dims}, {iterations} iterations, variances of their own: CPU microseconds per point and iteration")
    print("(the difference between runs of this many iterations and of one); in brackets ln p per point of the points learned from, and the CPU seconds of the whole run\n")
    row("C", "scikit-learn", "spikelet, all", "f32", "C' = 8 of C, f32")
    row(*["---"] * 5)
    for count in sizes:
        seen, _ = clusters(count, dims, points, 1, "diag")
        cells = []

        def peer(limit):
            means = seen[np.random.default_rng(1).choice(len(seen), count, replace=False)]
            precisions = np.tile(1 / seen.var(0), (count, 1))
            given = dict(means_init=means, precisions_init=precisions, weights_init=np.full(count, 1 / count))
            mixture = GaussianMixture(count, covariance_type="diag", max_iter=limit, tol=0, **given)
            return cpu(lambda: mixture.fit(seen), resource.RUSAGE_SELF)

        per = lambda long, short: 1e6 * (long - short) / (points * (iterations - 1))
        (mixture, long), (_, short) = peer(iterations), peer(1)
        cells.append(f"{per(long, short):.2f} ({mixture.score(seen):.3f}, {long:.1f} s)")
        few = ["--selected", "8", "--no-singletons"]
        for flags in [[], ["--precision", "f32"], ["--precision", "f32", *few]]:
            run = lambda limit: spikelet(program, seen, "diag", count, 1, "--restarts", "1", "--tolerance", "0", "--iterations", str(limit), *flags)
            (own, long), (_, short) = run(iterations), run(1)
            cells.append(f"{per(long, short):.2f} ({score(own, seen, 'diag'):.3f}, {long:.1f} s)")
        row(count, *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sets, a few seconds")
    parser.add_argument("--times", action="store_true", help="the second table only")
    parser.add_argument("program", nargs="?", default=str(ROOT / "target/release/spikelet"))
    arguments = parser.parse_args()
    if not arguments.times:
        likelihoods(arguments.program, arguments.quick)
    times(arguments.program, arguments.quick)


if __name__ == "__main__":
    main()
