# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of PyTorch that together have more weights than there is memory. One after the other answers a request, twice:
when its weights are away, and at once again, when they are on the GPU.

	request_steps.py FILE HOLD	FILE is what turner.cu shares, HOLD a program that takes the rest of the GPU's memory;
					PRELOAD: libraries of qCUDA for the programs; GIB: memory that they share; SIDE of
					the matrices
	request_steps.py program MIB	one of the programs

ROWS names a file that gets rows for perf/results/GPU/all.csv."""
import os
import statistics
import struct
import subprocess
import sys
import time

PROGRAMS, PART, ROUNDS = 8, 0.3, 3
SIDE = int(os.environ.get("SIDE", 8192))
MATRIX = 2 * SIDE * SIDE  # bytes
MOVE = 50e9  # bytes a second that moves of memory may take


def answer_requests(nbytes):
    import torch
    from steps import digest

    torch.manual_seed(1)
    x = torch.randn(64, SIDE, dtype=torch.half, device="cuda")
    # cuBLAS takes its memory before the rest of the GPU is taken.
    digest((x @ torch.zeros(SIDE, SIDE, dtype=torch.half, device="cuda")).float())
    torch.cuda.empty_cache()
    print("ready", flush=True)
    weights = []
    for line in sys.stdin:
        if line == "fill\n":
            for n in range(nbytes // MATRIX):
                torch.manual_seed(n)
                weights.append(torch.empty(SIDE, SIDE, dtype=torch.half, device="cuda").normal_(0, SIDE**-0.5))
            torch.cuda.synchronize()
            print("filled", flush=True)
            continue
        y = x
        for w in weights:
            y = y @ w
        print(digest(y.float()), flush=True)


class Program:
    def __init__(self, nbytes):
        env = dict(os.environ, QCU_LOOPBACK_SWAP=str(2 * nbytes + (1 << 30)))
        if env.get("PRELOAD"):
            env["LD_PRELOAD"] = env["PRELOAD"]
            # PyTorch opens libcuda.so.1 by name.
            ours = os.path.dirname(env["PRELOAD"].split(":")[0])
            env["LD_LIBRARY_PATH"] = ours + ":" + env.get("LD_LIBRARY_PATH", "")
        self.process = subprocess.Popen([sys.executable, __file__, "program", str(nbytes >> 20)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def hear(self):
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit(f"a program has ended: {self.process.wait()}")
        return line

    def ask(self, what):
        """Returns the answer and the milliseconds to it."""
        began = time.monotonic()
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.hear(), (time.monotonic() - began) * 1000


def hold(path, command, but):
    """Starts what takes all memory but so much, and waits until it has it."""
    env = {k: v for k, v in os.environ.items() if k != "QCU_LOOPBACK_BACKEND"}
    env["LD_LIBRARY_PATH"] = os.environ["NATIVE"]
    process = subprocess.Popen([command, path, "hold", str(but >> 20)], env=env)
    while True:
        with open(path, "rb") as f:
            if f.read(40)[32:40] == struct.pack("<Q", 1):
                return process
        if process.poll() is not None:
            sys.exit("the rest of the memory was not taken")
        time.sleep(0.05)


def main(path, command):
    gpu = int(float(os.environ.get("GIB", 20)) * 2**30)
    nbytes = int(gpu * PART) // MATRIX * MATRIX
    programs = [Program(nbytes) for _ in range(PROGRAMS)]
    holder = None
    try:
        for p in programs:
            p.hear()
        holder = hold(path, command, gpu)
        for p in programs:
            p.ask("fill")
        answers, times = set(), [([], []) for _ in programs]
        for n in range(ROUNDS + 1):
            for p, (away, resident) in zip(programs, times):
                for kept in away, resident:
                    answer, ms = p.ask("answer")
                    answers.add(answer)
                    if n:  # in the first round stores are new
                        kept.append(ms)
    finally:
        for p in programs:
            p.process.kill()
        if holder:
            holder.kill()
    print(f"{PROGRAMS} programs with weights of {nbytes / 2**30:.1f} GiB each, {gpu / 2**30:.1f} GiB for all; "
          f"{len(answers)} different answers (1 is right)")
    for name, of in ("away", 0), ("resident", 1):
        ms = sorted(t for both in times for t in both[of])
        print(f"request to answer, weights {name}: median {statistics.median(ms):.1f} ms, {ms[0]:.1f} to {ms[-1]:.1f}")
    print(f"out and in at 50 GB/s: {2 * nbytes / MOVE * 1000:.1f} ms")
    if os.environ.get("ROWS"):
        with open(os.environ["ROWS"], "w", encoding="utf-8") as f:
            for n, both in enumerate(times):
                for name, ms in zip(("away", "resident"), both):
                    f.write(f"{name},requests,program {n + 1},{nbytes},{statistics.median(ms):.3f},ms,{min(ms):.3f},{max(ms):.3f},"
                            f",{len(ms)},,,,,\n")
    return len(answers) != 1


if __name__ == "__main__":
    if sys.argv[1] == "program":
        answer_requests(int(sys.argv[2]) << 20)
    else:
        sys.exit(main(*sys.argv[1:]))
