"""Learning dictionaries and coding with them: Spikelet beside SPAMS and scikit-learn, and sources beside Picard, on the same data on one core.

    python host-trainer/experiments/versus-peers/versus_peers.py [--quick] [--only directions|coding|sources] [--spikelet PATH]

Installs the peers into a virtual environment of its own (target/peers), makes the data, runs everything and prints what each found
and the CPU seconds it took. Of Spikelet the whole process counts, reading and writing files included; of the peers only the call
that learns. Spikelet gets no setting but the number of latents. SPAMS gets the penalties and numbers of steps below, and all of
them are shown: the best of a column may be chosen for it. Coding has the true parameters: `spikelet infer` beside orthogonal matching pursuit of SPAMS,
which is told the noise as well. Time per point there is the slope between few and many points, of the process itself: starting it does not count, nor
what the system takes to read points and to write all posteriors.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
# A build of SPAMS without a compiler, and the others under their usual names.
PACKAGES = ["numpy", "scipy", "spams-bin", "scikit-learn", "python-picard"]
D, H, POINTS, ON, NOISE = 64, 256, 5000, 3, 0.1
# Penalty and steps of batches of 512 points.
SPAMS = [(1.0, 100), (1.0, 200), (2.0, 100), (2.0, 200), (3.0, 100), (3.0, 200)]
FOUND = 0.95  # cosine beyond which a direction is found


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="one data set")
    arguments.add_argument("--only", choices=("directions", "coding", "sources"), help="one of the three comparisons")
    arguments.add_argument("--spikelet", default=str(ROOT / "target/release/spikelet"), help="program to run")
    arguments = arguments.parse_args()
    if "SPIKELET_PEERS" not in os.environ:
        return again_with_peers()
    import numpy

    few, program = arguments.quick, arguments.spikelet
    if arguments.only in (None, "directions"):
        directions(numpy, program, 1 if few else 6)
    if arguments.only in (None, "coding"):
        coding(numpy, program, 1 if few else 4)
    if arguments.only in (None, "sources"):
        sources(numpy, program)


def directions(numpy, program, sets):
    """Dictionaries learned from data that were made with known ones."""
    print(f"directions found of {H} in {D} dimensions, CPU seconds, {POINTS} points, {ON} on at a time, noise variance {NOISE}\n")
    print("| data | program | setting | found | CPU s | noise variance |\n|---|---|---|--:|--:|--:|")
    ratios = []
    # The first is the data set of the design's prototypes.
    for set_ in range(sets):
        seeds = (103, 203) if set_ == 0 else (3000 + set_, 4000 + set_)
        truth, data = dictionary_data(numpy, *seeds)
        found, seconds, noise = spikelet(numpy, program, truth, data)
        print(f"| {set_} | Spikelet | | {found} | {seconds:.2f} | {noise:.4f} |", flush=True)
        as_many = []
        for penalty, steps in SPAMS:
            peer_found, peer_seconds = spams_directions(numpy, truth, data, penalty, steps)
            print(f"| {set_} | SPAMS | penalty {penalty}, {steps} steps | {peer_found} | {peer_seconds:.2f} | |", flush=True)
            as_many.append((peer_found, -peer_seconds))
        best, fastest = max(as_many)
        ratios.append((found - best, -fastest / seconds))
        if set_ == 0:
            peer_found, peer_seconds = scikit_directions(numpy, truth, data)
            print(f"| {set_} | scikit-learn | MiniBatchDictionaryLearning | {peer_found} | {peer_seconds:.2f} | |", flush=True)
    print("\n| data | more directions than the best of SPAMS | its CPU time over Spikelet's |\n|---|--:|--:|")
    for set_, (more, ratio) in enumerate(ratios):
        print(f"| {set_} | {more:+d} | {ratio:.1f} |")


def again_with_peers():
    """Runs this file with an interpreter that has the peers, on one core each."""
    place = ROOT / "target/peers"
    python = place / "bin/python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "SPIKELET_PEERS")}
    sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=os.environ | one).returncode)


def dictionary_data(numpy, first, second):
    """Random columns of length sqrt(D), and points in which some of them are on."""
    columns = numpy.random.default_rng(first).standard_normal((D, H))
    truth = columns / numpy.linalg.norm(columns, axis=0) * D**0.5
    rng = numpy.random.default_rng(second)
    on = rng.random((POINTS, H)) < ON / H
    strengths = on * rng.standard_normal((POINTS, H))
    return truth, strengths @ truth.T + NOISE**0.5 * rng.standard_normal((POINTS, D))


def count(numpy, learned, truth):
    unit = lambda columns: columns / (numpy.linalg.norm(columns, axis=0) + 1e-30)
    return int((abs(unit(learned).T @ unit(truth)).max(0) > FOUND).sum())


def cpu(work, who, parts=2):
    """What work returns, and the CPU seconds that it took: of this process, or of one that it starts. With one part only its own,
    not the system's, which reads and writes files."""
    used = lambda: sum(resource.getrusage(who)[:parts])
    before = used()
    result = work()
    return result, used() - before


def trained(numpy, program, data, *flags):
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f"{folder}/data.npy", data)
        command = [program, "train", "--model", "gsc", "--threads", "1", *flags, f"{folder}/data.npy", "--out", f"{folder}/m.spk"]
        run = lambda: subprocess.run(command, check=True, capture_output=True)
        _, seconds = cpu(run, resource.RUSAGE_CHILDREN)
        return json.load(open(f"{folder}/m.json"))["parameters"], seconds


def spikelet(numpy, program, truth, data):
    learned, seconds = trained(numpy, program, data, "--latents", str(H))
    return count(numpy, numpy.array(learned["w"]), truth), seconds, learned["sigma2"]


def spams_directions(numpy, truth, data, penalty, steps):
    import spams

    columns = numpy.asfortranarray(data.T)
    learn = lambda: spams.trainDL(columns, K=H, lambda1=penalty, mode=2, iter=steps, batchsize=512, numThreads=1, verbose=False)
    learned, seconds = cpu(learn, resource.RUSAGE_SELF)
    return count(numpy, learned, truth), seconds


def scikit_directions(numpy, truth, data):
    import warnings
    from sklearn.decomposition import MiniBatchDictionaryLearning

    warnings.simplefilter("ignore")  # its inner solver says of every batch that it could go on
    learner = MiniBatchDictionaryLearning(H, alpha=1.0, batch_size=512, max_iter=10, random_state=0, fit_algorithm="cd")
    _, seconds = cpu(lambda: learner.fit(data), resource.RUSAGE_SELF)
    return count(numpy, learner.components_.T, truth), seconds


def coding(numpy, program, times):
    """Points coded with the dictionary that made them: the signal-to-noise ratio of what is left without noise, and the time it takes."""
    import spams

    truth, _ = dictionary_data(numpy, 103, 203)
    rng = numpy.random.default_rng(5)
    points = POINTS * times
    strengths = (rng.random((points, H)) < ON / H) * rng.standard_normal((points, H))
    clean = strengths @ truth.T
    data = clean + NOISE**0.5 * rng.standard_normal((points, D))
    snr = lambda found: 10 * numpy.log10((clean**2).sum() / ((clean - found) ** 2).sum())
    few = max(points // 5, 1)
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f"{folder}/W.npy", truth)
        model = f"{folder}/m.spk"
        given = ["--model", "gsc", "--w", f"{folder}/W.npy", "--pi", str(ON / H), "--sigma2", str(NOISE), "--gram", "stored"]
        subprocess.run([program, "import", *given, "--out", model], check=True, capture_output=True)

        def infer(count):
            numpy.save(f"{folder}/Y.npy", data[:count])
            command = [program, "infer", model, f"{folder}/Y.npy", "--out-dir", f"{folder}/out", "--threads", "1"]
            run = lambda: subprocess.run(command, check=True, capture_output=True)
            return min(cpu(run, resource.RUSAGE_CHILDREN, 1)[1] for _ in range(3))

        seconds = (infer(points) - infer(few)) / (points - few)
        infer(points)
        own = snr(numpy.load(f"{folder}/out/mean.npy") @ truth.T)
    columns = numpy.asfortranarray(data.T)
    lengths = numpy.linalg.norm(truth, axis=0)
    unit = numpy.asfortranarray(truth / lengths)
    print(f"\n| coding of {points} points | setting | SNR, dB | us per point |\n|---|---|--:|--:|")
    print(f"| Spikelet, infer | true parameters | {own:.2f} | {1e6 * seconds:.1f} |")
    best = None
    # Up to as many columns as are ever on, or until what is left is as large as noise.
    for factor in (1.0, 1.2, 1.4, 1.6):
        code = lambda: spams.omp(columns, unit, L=16, eps=factor * D * NOISE, return_reg_path=False, numThreads=1)
        peer = min((cpu(code, resource.RUSAGE_SELF, 1) for _ in range(3)), key=lambda run: run[1])
        result = snr((unit @ peer[0].toarray()).T)
        print(f"| SPAMS, OMP | until the residual is {factor} times the noise | {result:.2f} | {1e6 * peer[1] / points:.1f} |")
        best = max(best or (result, peer[1] / points), (result, peer[1] / points))
    print(f"\nSpikelet's time over that of SPAMS at its best SNR: {seconds / best[1]:.2f}; SNR {own - best[0]:+.2f} dB")


def sources(numpy, program):
    """Ten sparse sources of ten channels with little noise: the Amari index, lower is better."""
    from picard import picard

    rng = numpy.random.default_rng(7)
    mixing = rng.standard_normal((10, 10))
    on = rng.random((10000, 10)) < 0.2
    data = (on * rng.standard_normal((10000, 10))) @ mixing.T + 0.01 * rng.standard_normal((10000, 10))
    learned, seconds = trained(numpy, program, data, "--latents", "10")
    (whiten, unmix, _), peer_seconds = cpu(lambda: picard(data.T, random_state=0), resource.RUSAGE_SELF)
    print("\n| sources | Amari index | CPU s |\n|---|--:|--:|")
    print(f"| Spikelet | {amari(numpy, numpy.linalg.inv(numpy.array(learned['w'])), mixing):.4f} | {seconds:.2f} |")
    print(f"| Picard | {amari(numpy, unmix @ whiten, mixing):.4f} | {peer_seconds:.2f} |")


def amari(numpy, unmixing, mixing):
    product = abs(unmixing @ mixing)
    h = len(product)
    rows = (product / product.max(1, keepdims=True)).sum() + (product / product.max(0)).sum()
    return rows / (2 * h * (h - 1)) - 1 / (h - 1)


main()
