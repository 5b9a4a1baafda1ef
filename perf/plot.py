#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws what perf/run has measured: perf/plot.py RESULT_FOLDER, which holds all.csv.

Leaves SVG and PNG of each plot beside it. Takes Debian's python3-matplotlib, and has
scripts/deps install it when it is missing.
"""
import csv
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {
    "native": ("native", "#444444"),
    "loopback": ("loopback, no VM", "#8c6bb1"),
    "vm": ("VM, CVM", "#d7301f"),
    "ncvm": ("VM, NCVM", "#2b8cbe"),
    "kcopy": ("VM, KERNEL_COPY", "#41ab5d"),
    "vms": ("a VM each", "#238443"),
    "natives": ("two programs, native", "#999999"),
    "frag": ("VM, fragmented memory", "#fe9929"),
}


def fail(text):
    print("plot.py: " + text, file=sys.stderr)
    sys.exit(2)


def get_matplotlib():
    """Matplotlib's pyplot; installs the package once if need be."""
    try:
        import matplotlib
    except ImportError:
        deps = os.path.join(HERE, "..", "scripts", "deps")
        if os.environ.get("QCU_PLOT_AGAIN") or subprocess.call([deps, "--no-cuda", "--plots"]):
            fail("python3-matplotlib is missing and cannot be installed")
        os.environ["QCU_PLOT_AGAIN"] = "1"
        os.execv("/usr/bin/python3", ["/usr/bin/python3", os.path.abspath(__file__)] + sys.argv[1:])
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "qcuda"  # the same numbers give the same file
    matplotlib.rcParams["font.size"] = 9
    import matplotlib.pyplot as plt
    return plt


def read(path):
    """{(label, benchmark, case, bytes): value}"""
    rows = {}
    try:
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                key = (row["label"], row["benchmark"], row["case"], int(row["bytes"]))
                rows[key] = float(row["value"])
    except OSError as e:
        fail(str(e))
    except (KeyError, TypeError, ValueError) as e:
        fail("%s: not a table of perf/run (%s)" % (path, e))
    if not rows:
        fail("%s: no rows" % path)
    return rows


def size(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return "%d %s" % (n, unit)
        n /= 1024
    return "%g GiB" % n


class Result:
    def __init__(self, folder):
        self.folder = folder
        self.rows = read(os.path.join(folder, "all.csv"))
        self.plt = get_matplotlib()
        self.note = ""
        table = os.path.join(folder, "table.txt")
        if os.path.exists(table):
            with open(table) as f:
                said = [line.strip() for line in f if line.startswith(("GPU:", "VM:"))]
            self.note = "; ".join(said)

    def labels(self, benchmark):
        there = {k[0] for k in self.rows if k[1] == benchmark}
        return [w for w in WAYS if w in there]

    def line(self, label, benchmark, case):
        """Sizes and values of one case, by size."""
        points = sorted((k[3], v) for k, v in self.rows.items() if k[:3] == (label, benchmark, case))
        return [p[0] for p in points], [p[1] for p in points]

    def value(self, label, benchmark, case, nbytes):
        return self.rows.get((label, benchmark, case, nbytes))

    def cases(self, benchmark):
        return {k[2] for k in self.rows if k[1] == benchmark}

    def sizes(self, benchmark):
        return sorted({k[3] for k in self.rows if k[1] == benchmark})

    def save(self, fig, name):
        if self.note:
            words, lines, line = self.note.split(), [], ""
            for word in words:
                if len(line) + len(word) > 150:
                    lines.append(line)
                    line = ""
                line += word + " "
            fig.text(0.01, 0.005, "\n".join(lines + [line]), fontsize=6, color="#666666", va="bottom")
        fig.tight_layout(rect=(0, 0.05, 1, 1))
        for kind in ("svg", "png"):
            path = os.path.join(self.folder, "%s.%s" % (name, kind))
            part = path + ".part"
            fig.savefig(part, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
            os.rename(part, path)
            print(path)
        self.plt.close(fig)


def bandwidth(r):
    """The paper's Figures 3 and 4."""
    if not r.labels("bandwidth"):
        return
    fig, axes = r.plt.subplots(2, 2, figsize=(10, 7), sharex=True)
    for column, direction in enumerate(("h2d", "d2h")):
        for row, (memory, way) in enumerate((("pinned", "async"), ("pageable", "sync"))):
            ax = axes[row][column]
            for label in r.labels("bandwidth"):
                x, y = r.line(label, "bandwidth", "%s/%s/%s" % (memory, way, direction))
                if x:
                    ax.plot(x, y, "o-", markersize=3, color=WAYS[label][1], label=WAYS[label][0])
            ax.set_xscale("log", base=2)
            ax.set_xticks([s for i, s in enumerate(r.sizes("bandwidth")) if i % 2 == 0])
            ax.xaxis.set_major_formatter(lambda v, _: size(v))
            ax.tick_params(axis="x", rotation=30)
            ax.set_ylim(bottom=0)
            ax.grid(alpha=0.3)
            ax.set_title("%s, %s, %s" % (memory, "back to back" if way == "async" else "one at a time",
                                         direction.upper()))
            ax.set_ylabel("GB/s")
    axes[0][0].legend()
    r.save(fig, "bandwidth")


def breakdown(r):
    """The paper's Figure 5."""
    parts = [("copy", "#2b8cbe"), ("device", "#a6bddb"), ("queue", "#fdbb84"), ("driver", "#ef6548"),
             ("map", "#238b45"), ("pin", "#990000"), ("library", "#777777")]
    memories = [m for m in ("pinned", "pageable", "first", "stack", "file")
                if "%s/h2d/copy" % m in r.cases("breakdown")]
    labels = [w for w in r.labels("breakdown") if w not in ("native", "loopback")]
    if not memories or not labels:
        return
    label = labels[0]
    fig, axes = r.plt.subplots(2, len(memories), figsize=(3 * len(memories), 6.5), squeeze=False)
    for column, memory in enumerate(memories):
        for row, direction in enumerate(("h2d", "d2h")):
            ax = axes[row][column]
            sizes = r.line(label, "breakdown", "%s/%s/total" % (memory, direction))[0]
            below = [0.0] * len(sizes)
            # Each part is a separate median, so the sum of the parts is only nearly the total.
            time = {(p, s): max(r.value(label, "breakdown", "%s/%s/%s" % (memory, direction, p), s) or 0, 0)
                    for p, _ in parts for s in sizes}
            whole = {s: sum(time[p, s] for p, _ in parts) or 1 for s in sizes}
            for part, color in parts:
                share = [100 * time[part, s] / whole[s] for s in sizes]
                ax.bar(range(len(sizes)), share, bottom=below, color=color, label=part)
                below = [a + b for a, b in zip(below, share)]
            ax.set_xticks(range(len(sizes)))
            ax.set_xticklabels([size(s) for s in sizes], rotation=60, fontsize=7)
            ax.set_title("%s, %s" % (memory, direction.upper()))
            ax.set_ylabel("% of one cudaMemcpy" if not column else "")
    axes[0][-1].legend(fontsize=7)
    r.save(fig, "breakdown")


def bars(r, ax, names, values, ways):
    """values[way][name]; bars of the ways side by side."""
    width = 0.8 / max(len(ways), 1)
    for i, way in enumerate(ways):
        y = [values[way].get(n) or 0 for n in names]
        ax.bar([k + i * width for k in range(len(names))], y, width, color=WAYS[way][1], label=WAYS[way][0])
    ax.set_xticks([k + 0.4 - width / 2 for k in range(len(names))])
    ax.set_xticklabels(names, rotation=30, ha="right", fontsize=8)
    ax.grid(axis="y", alpha=0.3)


def streams(r):
    """The paper's Table I."""
    ways, sizes = r.labels("streams"), r.sizes("streams")
    if not ways:
        return
    fig, axes = r.plt.subplots(1, len(sizes), figsize=(max(4 * len(sizes), 6), 4), squeeze=False)
    names = ["none", "2-streams", "4-streams", "8-streams"]
    for ax, nbytes in zip(axes[0], sizes):
        values = {w: {n: r.value(w, "streams", "down/" + n, nbytes) for n in names} for w in ways}
        bars(r, ax, names, values, ways)
        ax.set_title("kernel and download, " + size(nbytes))
        ax.set_ylabel("ms")
    axes[0][0].legend(fontsize=7)
    r.save(fig, "streams")


def chunks(r):
    ways = [w for w in r.labels("chunks") if w not in ("native", "loopback")]
    if not ways:
        return
    order = {"K": 1, "M": 1024}
    names = sorted({c.split("/")[0] for c in r.cases("chunks")}, key=lambda t: int(t[:-1]) * order[t[-1]])
    sizes = r.sizes("chunks")
    cases = ["pinned/h2d", "pinned/d2h", "pageable/h2d", "pageable/d2h"]
    fig, axes = r.plt.subplots(len(ways), 4, figsize=(14, 3.2 * len(ways)), squeeze=False)
    for row, way in enumerate(ways):
        for column, case in enumerate(cases):
            ax = axes[row][column]
            grid = [[r.value(way, "chunks", "%s/%s" % (n, case), s) or 0 for s in sizes] for n in names]
            ax.imshow(grid, aspect="auto", origin="lower", cmap="viridis", vmin=0)
            for y, line in enumerate(grid):
                for x, v in enumerate(line):
                    dark = v < 0.6 * max(map(max, grid))
                    ax.text(x, y, "%.3g" % v, ha="center", va="center", fontsize=7,
                            color="white" if dark else "black")
            ax.set_xticks(range(len(sizes)))
            ax.set_xticklabels([size(s) for s in sizes], fontsize=7, rotation=30)
            ax.set_yticks(range(len(names)))
            ax.set_yticklabels(names)
            ax.set_title("%s: %s, GB/s" % (WAYS[way][0], case), fontsize=8)
            ax.set_ylabel("chunks" if not column else "")
    r.save(fig, "chunks")


def names_of(r, benchmark):
    return sorted(c.split("/")[0] for c in r.cases(benchmark) if c.endswith("/total"))


def ratios(r, ax, benchmark, guest):
    """Each application's time in the VM over native's, by input size."""
    sizes = r.sizes(benchmark)
    for name in names_of(r, benchmark):
        points = [(s, r.value(guest, benchmark, name + "/total", s),
                   r.value("native", benchmark, name + "/total", s)) for s in sizes]
        points = [(s, a / b) for s, a, b in points if a and b]
        ax.plot([p[0] for p in points], [p[1] for p in points], "o-", markersize=3, label=name)
    ax.axhline(1, color="#444444", linewidth=0.8)
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes)
    ax.xaxis.set_major_formatter(lambda v, _: size(v))
    ax.set_ylabel("VM / native, time of GPU work and calls")
    ax.grid(alpha=0.3)


def opencl(r):
    """The applications in OpenCL, beside what virtio-CL has published. Its sizes are not known."""
    if not {"native", "vm"} <= set(r.labels("opencl-apps")):
        return
    fig, ax = r.plt.subplots(figsize=(9, 4.5))
    ratios(r, ax, "opencl-apps", "vm")
    ax.axhspan(1.039, 1.117, color="#999999", alpha=0.5, label="virtio-CL, five applications")
    ax.axhline(1.436, color="#999999", linestyle="--", label="virtio-CL, MersenneTwister")
    ax.axhline(7.68, color="#999999", linestyle=":", label="virtio-CL, BlackScholes, largest input")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda v, _: "%g" % v)
    ax.legend(fontsize=7, ncol=3)
    r.save(fig, "opencl")


def apps(r):
    """Ratio to native, by input size; without native, the times themselves."""
    ways, sizes = r.labels("apps"), r.sizes("apps")
    if not ways:
        return
    names = names_of(r, "apps")
    guests = [w for w in ways if w not in ("native", "loopback")]
    if "native" in ways and guests:
        fig, ax = r.plt.subplots(figsize=(9, 4.5))
        ratios(r, ax, "apps", guests[0])
        ax.set_ylim(bottom=0)
        ax.legend(fontsize=7, ncol=2)
    else:
        fig, ax = r.plt.subplots(figsize=(9, 4.5))
        values = {w: {n: r.value(w, "apps", n + "/total", sizes[-1]) for n in names} for w in ways}
        bars(r, ax, names, values, ways)
        ax.set_ylabel("ms, input of " + size(sizes[-1]))
        ax.legend(fontsize=7)
    r.save(fig, "apps")


def scale(r):
    ways = r.labels("scale")
    counts = sorted({int(c.split("-")[0]) for c in r.cases("scale")})
    if not ways:
        return
    fig, axes = r.plt.subplots(1, 2, figsize=(9, 3.8))
    for ax, what, text in ((axes[0], "total", "GB/s together"), (axes[1], "most-to-least", "most to least")):
        values = {w: {} for w in ways}
        for key, v in r.rows.items():
            if key[1] == "scale" and key[2].endswith("-programs/" + what) and key[0] in values:
                values[key[0]][key[2].split("-")[0]] = v
        bars(r, ax, [str(n) for n in counts], values, ways)
        ax.set_xlabel("programs at once")
        ax.set_ylabel(text)
    axes[0].legend(fontsize=7)
    r.save(fig, "scale")


def vulkan(r):
    """Vulkan in the VM, by what is done in one submission, beside what was published for a system that carried the
    calls itself."""
    if not {"native", "vm", "natives", "vms"} <= set(r.labels("vulkan")):
        return
    fig, axes = r.plt.subplots(1, 2, figsize=(11, 4.5), sharex=True)
    ax = axes[0]
    for (guest, host), style in ((("vm", "native"), "o-"), (("vms", "natives"), "s--")):
        for color, threads in zip(("#d7301f", "#fe9929", "#2b8cbe", "#41ab5d"), (1, 2, 4, 8)):
            x, y = r.line(guest, "vulkan", "%d-threads/one" % threads)
            y = [100 * v / r.value(host, "vulkan", "%d-threads/one" % threads, s) for s, v in zip(x, y)]
            ax.plot(x, y, style, markersize=3, color=color, linewidth=1 if guest == "vm" else 0.6,
                    label="%s, %d thread%s" % ("one VM" if guest == "vm" else "two VMs", threads, "s"[:threads > 1]))
    ax.axhspan(12, 98, color="#999999", alpha=0.25, label="published: 12 % to 98 %, by the work per frame")
    ax.set_ylabel("% of native, each submission waited for")
    ax = axes[1]
    for label in ("native", "vm"):
        for case, style in (("one", "o-"), ("64", "s:")):
            x, y = r.line(label, "vulkan", "1-threads/" + case)
            ax.plot(x, y, style, markersize=3, color=WAYS[label][1],
                    label=("native" if label == "native" else "VM") + (", 64 at once" if case == "64" else ""))
    ax.set_ylabel("submissions per second, one thread")
    ax.yaxis.set_major_formatter(lambda v, _: "%g" % v)
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks(r.sizes("vulkan"))
        ax.xaxis.set_major_formatter(lambda v, _: size(v))
        ax.set_xlabel("data of one submission")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=6, ncol=2)
    axes[0].yaxis.set_major_formatter(lambda v, _: "%g" % v)
    r.save(fig, "vulkan")


def batches(r):
    """PyTorch's batches on their way to the GPU (tests/gpu/training_steps.py)."""
    if not {"native", "vm"} <= set(r.labels("batches")):
        return
    fig, ax = r.plt.subplots(figsize=(6, 4))
    for label in ("native", "vm"):
        for case, style in (("pageable", "o-"), ("pinned", "s:")):
            x, y = r.line(label, "batches", case)
            ax.plot(x, y, style, markersize=4, color=WAYS[label][1],
                    label=("native, " if label == "native" else "VM, ") + case)
    ax.set_xscale("log", base=2)
    ax.set_xticks(r.sizes("batches"))
    ax.xaxis.set_major_formatter(lambda v, _: size(v))
    ax.set_xlabel("batch")
    ax.set_ylabel("GB/s")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    r.save(fig, "batches")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: perf/plot.py RESULT_FOLDER", file=sys.stderr)
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    r = Result(sys.argv[1])
    for plot in (bandwidth, breakdown, streams, chunks, apps, opencl, scale, vulkan, batches):
        plot(r)


main()
