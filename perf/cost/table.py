#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Makes the table of what calls cost, in numbers that do not depend on the machine.

usage: table.py ROWS MARKS [KVM_ROWS TRACE]   prints the table
       table.py --estimate TABLE              prints what calls would take on a host with KVM
       table.py --check OLD NEW...            exit code 1 if a call costs more instructions than in OLD, in each NEW

ROWS is what the benchmarks printed, MARKS the counts of the emulator's plugin (count.c) at each mark. KVM_ROWS is the
same for a guest under KVM, TRACE the tracepoints of KVM meanwhile. Each sample lies between two marks. The least sample
counts: in the others the guest's clock interrupts, too.
"""
import collections
import re
import sys

MARK = "kvm_cpuid: func 44554351 "
GROWTH = 1.05  # more than this is reported,
SLACK = 30  # and more than so many instructions
EVENTS = ("kvm_exit", "kvm_userspace_exit", "kvm_msi_set_irq")

Row = collections.namedtuple("Row", "name ops samples commands kicks interrupts")


def read_rows(path):
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("marks "):
                name, ops, samples, *counts = line.split()[1:]
                rows.append(Row(name, int(ops), int(samples), *counts))
    return rows


def read_marks(path):
    with open(path, encoding="ascii") as f:
        return [tuple(map(int, line.split())) for line in f]


def read_trace(path):
    """Returns the sums of each event at each mark."""
    marks, sums = [], dict.fromkeys(EVENTS, 0)
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if "LOST" in line:
                sys.exit(f"{path}: events were lost")
            if MARK in line:
                sums["kvm_exit"] -= 1  # the mark's own
                marks.append(tuple(sums.values()))
            event = re.search(r": (kvm_\w+): ", line)
            if event and event[1] in sums:
                sums[event[1]] += 1
    return marks


def least(rows, marks):
    """Returns for each row the least of each count, for one operation."""
    costs, at = {}, 0
    if len(marks) != 2 * sum(row.samples for row in rows):
        sys.exit(f"{len(marks)} marks, {sum(row.samples for row in rows)} samples")
    for row in rows:
        samples = [
            [(b - a) / row.ops for a, b in zip(marks[i], marks[i + 1])] for i in range(at, at + 2 * row.samples, 2)
        ]
        at += 2 * row.samples
        best = min(samples, key=lambda s: s[0] + s[1])
        costs[row.name] = best
    return costs


def print_table(rows, costs, exits):
    head = f"{'call':46} {'user':>8} {'kernel':>8} {'commands':>8} {'kicks':>6} {'interrupts':>10}"
    print(head + (f" {'exits':>6} {'to QEMU':>7} {'MSI':>5}" if exits else ""))
    for row in rows:
        user, kernel = costs[row.name][:2]
        line = f"{row.name:46} {user:8.0f} {kernel:8.0f} {row.commands:>8} {row.kicks:>6} {row.interrupts:>10}"
        if exits and row.name in exits:
            line += "".join(f" {n:{w}.2f}" for n, w in zip(exits[row.name], (6, 7, 5)))
        print(line)


def read_table(path):
    """Returns for each call the instructions of the program and of the kernel, and whether it waits."""
    table = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if len(words) > 5 and words[0].count("/") > 1:
                waits = float(words[5]) >= 0.9 or "drained" in words[0] or "many" in words[0]
                table[words[0]] = (int(words[1]), int(words[2]), waits)
    return table


def check(old_path, new_paths):
    """How long the kernel waits depends on the host. So calls that wait are compared by what the program executes."""
    old, new = read_table(old_path), [read_table(path) for path in new_paths]
    rc = 0
    for name, (user, kernel, waits) in old.items():
        costs = [table[name][0] + (0 if waits else table[name][1]) for table in new if name in table]
        if not costs:
            print(f"{name}: is missing")
            rc = 1
            continue
        before = user + (0 if waits else kernel)
        if min(costs) > max(before * GROWTH, before + SLACK):
            print(f"{name}: {before} instructions before, {min(costs)} now")
            rc = 1
    print(f"{len(old)} calls compared")
    return rc if old else 1


def estimate(path):
    """One instruction for each cycle of 3 GHz, and 1.2 us for each exit."""
    print(f"{'call':46} {'us':>8}   estimated: 3000 instructions and 1.2 us for each exit")
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if len(words) == 9 and "/" in words[0]:
                us = (int(words[1]) + int(words[2])) / 3000 + 1.2 * float(words[6])
                print(f"{words[0]:46} {us:8.2f}")
    return 0


def main(args):
    if len(args) == 2 and args[0] == "--estimate":
        return estimate(args[1])
    if len(args) >= 3 and args[0] == "--check":
        return check(args[1], args[2:])
    if len(args) not in (2, 4):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    rows = read_rows(args[0])
    exits = least(read_rows(args[2]), read_trace(args[3])) if len(args) == 4 else None
    print_table(rows, least(rows, read_marks(args[1])), exits)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
