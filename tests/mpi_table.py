"""What training by several processes takes: measured with one and two of them, and what follows for 64 machines.

tests/mpi --table builds the command and calls this with the folder that it is in.
"""

import array
import json
import os
import random
import re
import resource
import subprocess
import sys

FOLDER = sys.argv[1]
DIMS, POINTS = 64, 8192
CORES = 16  # of a machine of the cluster
NETWORKS = [("1 Gbit/s", 0.125e9), ("10 Gbit/s", 1.25e9), ("100 Gbit/s", 12.5e9)]
LATENCY = 50e-6  # of a message between machines, the time a process waits for another included


def write(name, count):
    """Points of 3 of 256 random directions and noise; 2048 of them, again and again."""
    rng = random.Random(4)
    columns = [[rng.gauss(0, DIMS**-0.5) for _ in range(DIMS)] for _ in range(256)]
    some = array.array("f")
    for _ in range(2048):
        y = [rng.gauss(0, 0.05) for _ in range(DIMS)]
        for column in rng.sample(columns, 3):
            z = rng.gauss(0, 2)
            y = [a + z * b for a, b in zip(y, column)]
        some.extend(y)
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (count, DIMS)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        for _ in range(count // 2048):
            out.write(some.tobytes())


def train(ranks, data, iterations, flags):
    """CPU seconds of all processes, seconds between the first and the last iteration, bytes moved per iteration."""
    command = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    command += ["./spikelet", "train", data, "--threads", "1", "--out", "t.spk", "--tolerance", "0", "--restarts", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        command + ["--iterations", str(iterations)] + flags, cwd=FOLDER, capture_output=True, text=True
    )
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    with open(os.path.join(FOLDER, "t.json")) as file:
        history = json.load(file)["history"]
    moved = re.search(r"moved ([0-9.]+) (bytes|kB|MB|GB) per iteration", done.stderr)
    scale = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
    bytes_moved = float(moved[1]) * scale[moved[2]] if moved else 0.0
    return cpu, history[-1]["seconds"] - history[0]["seconds"], bytes_moved


def per_iteration(ranks, data, flags):
    """CPU seconds of an iteration, of all processes together, the least of two; what they wait for each other counts, too."""
    each = lambda n: min(train(ranks, data, n, flags)[0] for _ in range(2))
    return (each(3) - each(1)) / 2


def main():
    write("all.npy", POINTS)
    write("part.npy", POINTS // 4)
    print(f"| D = {DIMS}, {POINTS} points | E-step, us a point | M-step, ms | bytes moved, 2 processes | speed-up of 2, by CPU | by the clock |")
    print("|---|--:|--:|--:|--:|--:|")
    found = []
    for latents, name in [(64, "H = 64, plain EM"), (256, "H = 256, plain EM, adaptive states")]:
        flags = ["--model", "gsc", "--latents", str(latents), "--batch", "0"]
        whole, part = per_iteration(1, "all.npy", flags), per_iteration(1, "part.npy", flags)
        point = (whole - part) / (POINTS * 3 / 4)
        m_step = max(whole - POINTS * point, 0.0)
        times = {ranks: min(train(ranks, "all.npy", 3, flags)[1] for _ in range(3)) for ranks in (1, 2)}
        by_cpu = 2 * whole / per_iteration(2, "all.npy", flags)
        moved = train(2, "all.npy", 2, flags)[2]
        print(
            f"| {name} | {1e6 * point:.1f} | {1e3 * m_step:.0f} | {moved / 1e6:.2f} MB | {by_cpu:.2f}"
            f" | {times[1] / times[2]:.2f} |",
            flush=True,
        )
        found.append((name, latents, point, m_step, moved / 2))  # two processes: the sum once up, once back
    print()
    print(f"Machines of {CORES} cores, part of R times one machine's speed that is left (T(1) / (R T(R))):\n")
    print("| | points | network | R = 4 | R = 16 | R = 64 | below a half from |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, latents, point, m_step, size in found:
        for points in (10**6, 10**8):
            # Sums that are kept apart: see host-trainer/src/train/e_step.rs.
            numbers = latents * (latents + 1) // 2 + 2 * DIMS * latents + DIMS**2
            parts = max(min(points // 2**14, 2**25 // numbers, 1024), 16)
            for network, speed in NETWORKS:

                def seconds(ranks):
                    busy = min(ranks * CORES, parts)
                    # Up the chain in pieces of 256 KiB, then back to all.
                    pieces = (ranks - 1) * (2**18 / speed + LATENCY) if ranks > 1 else 0.0
                    exchange = 2 * size / speed + pieces if ranks > 1 else 0.0
                    return points * point / busy + m_step + exchange

                left = lambda ranks: seconds(1) / (ranks * seconds(ranks))
                below = next((r for r in range(1, 4097) if left(r) < 0.5), None)
                row = " | ".join(f"{left(r):.2f}" for r in (4, 16, 64))
                print(f"| {name} | {points:.0e} | {network} | {row} | {below or 'more than 4096'} |")


main()
