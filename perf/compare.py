#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares results of perf/run: perf/compare.py BEFORE... -- AFTER...

Each argument is a result folder of perf/run. The first folder after the dashes is compared with the
first one before them, and so on, so make the runs in that order: before, after, after, before, ...
on one machine. Prints for each figure the median of the pairs' ratios, the least and the most; the
benchmarks' medians come last. A ratio above 1 means slower, also for figures that are rates.

One pair says little: on an emulated CPU two runs of the same programs differ by a third. So a figure
counts as worse or better only if it is so in every pair, by more than one percent.
"""
import csv
import os
import statistics
import sys

TOLERANCE = 0.01


def fail(text):
    print("compare.py: " + text, file=sys.stderr)
    sys.exit(2)


def load(folder):
    """The figures of one result: {(way, benchmark, case, bytes, unit): value}."""
    figures = {}
    path = os.path.join(folder, "all.csv")
    try:
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                key = tuple(row[k] for k in ("label", "benchmark", "case", "bytes", "unit"))
                figures[key] = float(row["value"])
    except OSError as e:
        fail("%s: %s" % (path, e.strerror))
    except (KeyError, TypeError, ValueError):
        fail(path + " is not a table of perf/run")
    return figures


def ratios(key, before, after):
    """How many times slower each run after is than its partner before; None for a missing figure."""
    found = []
    for a, b in zip(before, after):
        old, new = a.get(key, 0), b.get(key, 0)
        if old <= 0 or new <= 0:
            return None
        found.append(old / new if key[4].endswith("/s") else new / old)
    return found


def main():
    args = sys.argv[1:]
    if args.count("--") != 1 or args.index("--") == 0 or len(args) != 2 * args.index("--") + 1:
        fail("usage: perf/compare.py BEFORE... -- AFTER..., as many folders after as before")
    count = args.index("--")
    before, after = [load(f) for f in args[:count]], [load(f) for f in args[count + 1:]]
    groups, skipped = {}, 0
    for key in before[0]:
        r = ratios(key, before, after)
        if r is None:
            skipped += 1
            continue
        low, high = min(r), max(r)
        said = "worse" if low > 1 + TOLERANCE else "better" if high < 1 - TOLERANCE else ""
        groups.setdefault(key[:2], []).append((statistics.median(r), said))
        print("%-8s %-10s %-34s %11s  %6.3f (%.3f to %.3f) %s"
              % (key[0], key[1], key[2], key[3], statistics.median(r), low, high, said))
    if not groups:
        fail("the results have no figure in common")
    print("\n%d pairs; %d figures are missing in some run, or zero" % (count, skipped))
    for (way, benchmark), found in groups.items():
        said = [s for _, s in found]
        print("%-8s %-10s %4d figures, median %.4f; in every pair worse by 1 %%: %d, better: %d"
              % (way, benchmark, len(found), statistics.median(m for m, _ in found),
                 said.count("worse"), said.count("better")))


main()
