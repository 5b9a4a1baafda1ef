# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests/census/run keeps of a wheel, and the page that it makes of all of them.

	page.py keep WHEEL <JSON >RESULT     of `qcu check --all --json`
	page.py print FOLDER                 docs/programs/census.md, from the results in a folder

A file that needs a library of another package has it if its wheel declares that package (Requires-Dist, with its
extras), if that package has a file of this name, and if that file can be loaded in its turn."""

import collections
import fnmatch
import json
import os
import re
import sys
import zipfile

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import Version

HERE = os.path.dirname(os.path.abspath(__file__))
SHOWN = 4
# Libraries of NVIDIA's that do not work here, wherever they are, and what they are for.
NEVER = {"libcupti": "CUPTI", "libnvcuvid": "NVDEC", "libnvidia-encode": "NVENC", "libnvinfer": "TensorRT", "libnvoptix": "OptiX",
         "libnvshmem_host": "NVSHMEM"}


def keep(path):
    """The answer of `qcu check --all`, with the packages that the wheel declares."""
    result = json.load(sys.stdin)
    with zipfile.ZipFile(path) as wheel:
        [metadata] = [n for n in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
        head = wheel.read(metadata).decode().replace("\r\n", "\n").split("\n\n")[0]
    result["requires"] = re.findall(r"^Requires-Dist: *(.*?) *$", head, re.M)
    json.dump(result, sys.stdout, indent=1)


def lines_of(name):
    with open(f"{HERE}/{name}", encoding="utf-8") as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


def some(names):
    names = sorted(set(names))
    return ", ".join(f"`{n}`" for n in names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


class Wheel:
    def __init__(self, name, version, mb, result):
        self.name, self.version, self.mb = name, version, mb
        self.files, self.others = result["files"], result["others"]
        self.requires, self.provides = [], {}
        for text in result["requires"]:
            try:
                self.requires.append(Requirement(text))
            except InvalidRequirement:
                print(f"{name}: not understood: {text}", file=sys.stderr)
        for file in self.files + self.others:
            file["wheel"] = self
            for n in file["names"]:
                self.provides.setdefault(n, file)

    def wants(self):
        """The packages that this one declares for Linux, with any of its extras."""
        for r in self.requires:
            extras = re.findall(r"extra *== *[\"']([^\"']+)", str(r.marker)) or [""]
            if not r.marker or any(r.marker.evaluate({"extra": e, "sys_platform": "linux", "platform_system": "Linux",
                                                      "platform_machine": "x86_64"}) for e in extras):
                yield r


class Census:
    def __init__(self, folder):
        self.rows, self.lost = [], []
        self.versions = collections.defaultdict(list)  # of each package
        for of_page, name, version, mb in [(True, *w) for w in lines_of("wheels.txt")] + [(False, *w) for w in lines_of("others.txt")]:
            try:
                with open(f"{folder}/{name}-{version}.json", encoding="utf-8") as f:
                    wheel = Wheel(name, version, mb, json.load(f))
            except (FileNotFoundError, json.JSONDecodeError):
                self.lost += [name] if of_page else []
                continue
            self.versions[canonicalize_name(name)].append(wheel)
            self.rows += [wheel] if of_page else []
        self.together = collections.defaultdict(list)  # a package: those that it is used with and does not declare
        self.parts = collections.defaultdict(list)  # a package: files that only one of its parts needs
        self.system, self.fails, self.seen = {}, {}, {}
        for word, name, *rest in lines_of("remarks.txt"):
            if word == "with":
                self.together[name] += rest
            elif word == "part":
                self.parts[name].append((rest[0], " ".join(rest[1:])))
            elif word == "system":
                self.system[name] = " ".join(rest)
            elif word == "fails":
                self.fails[name] = " ".join(rest)
            else:
                sys.exit(f"remarks.txt: {word}")

    def around(self, wheel):
        """The packages that pip installs with a wheel, as far as they were read."""
        found, todo = [], [wheel]
        while todo:
            one = todo.pop()
            found.append(one)
            wanted = list(one.wants()) + [Requirement(n) for n in self.together[one.name]]
            for r in wanted:
                known = self.versions[canonicalize_name(r.name)]
                # Another version stands for one that was not read. Its libraries have the same names.
                fit = [w for w in known if r.specifier.contains(w.version, prereleases=True)] or known
                best = max(fit, key=lambda w: Version(w.version), default=None)
                if best and best not in found and best not in todo:
                    todo.append(best)
        return found[1:]

    def why_not(self, file, around):
        """Why a file cannot be loaded, and what it takes from elsewhere. The files that it needs are looked at in turn."""
        key = id(file), tuple(sorted(id(w) for w in around))
        if key in self.seen:
            return self.seen[key]
        why, used = self.seen[key] = set(), set()  # libraries may need one another
        for w in file.get("why", []):
            if not re.match(r"needs \S+, which ", w):
                why.add(re.split(r"[:(]", w)[0].strip())
        if file.get("verdict") == "not known" and not file["needs"]:
            why.add("it cannot be read")
        for name, where in file["needs"].items():
            other = file["wheel"].provides.get(name) if where == "here" else None
            for w in around if where in ("absent", "missing") else []:
                # What is missing even if it is installed stays so.
                if name in w.provides and not (where == "missing" and self.is_ours(w.provides[name])):
                    other = w.provides[name]
                    used.add(w.name)
                    break
            if other:
                its, more = self.why_not(other, around)
                why |= {w if w.startswith("needs ") else f"needs `{name}`: {w}" for w in its}
                used |= more
            elif where in ("absent", "missing") and name not in self.system:
                why.add(f"needs `{name}`")
            elif where == "absent":
                used.add(self.system[name])
        return why, used

    @staticmethod
    def is_ours(file):
        return any(w.startswith("this is NVIDIA's own") for w in file.get("why", []))

    def judge(self, wheel):
        """The verdict, the parts that do not run, why not, and which packages were needed for it."""
        around = self.around(wheel)
        parts, why, used, broken = set(), set(), set(), 0
        unused = [p for p, _ in self.parts[wheel.name] if not any(fnmatch.fnmatch(f["file"], p) for f in wheel.files + wheel.others)]
        if unused:
            sys.exit(f"remarks.txt: {wheel.name} has no file {unused[0]}")
        for file in wheel.files:
            reasons, more = self.why_not(file, around)
            used |= more
            broken += bool(reasons)
            part = next((name for pattern, name in self.parts[wheel.name] if fnmatch.fnmatch(file["file"], pattern)), None)
            if reasons and part:
                parts.add(part)
            elif reasons:
                why |= reasons
            else:
                names = [*file["needs"], *(n for n, where in file["by_name"].items() if where == "missing")]
                parts |= {NEVER[n.split(".")[0]] for n in names if n.split(".")[0] in NEVER}
                parts |= {"the refused calls"} if file["unserved"] or file["lacking"] else set()
        if wheel.name in self.fails:
            why = {self.fails[wheel.name]}
        return ("does not run" if why else "runs in part" if parts else "runs"), parts, why, used, broken


def runtimes(files):
    count = collections.Counter()
    for f in files:
        if f["runtime"]:
            version, _, code = f["runtime"].partition(" ")
            count[f"{'stripped' if code else 'static'} {code or version}"] += 1
        for name in f["shared"]:
            count["shared " + re.sub(r"\.so\.", " ", name).removeprefix("libcudart ").removeprefix("libcudart")] += 1
    return ", ".join(f"{k} x{n}" if n > 1 else k for k, n in sorted(count.items()))


def paragraph(text):
    print()
    line = ""
    for word in text.split(" "):
        if len(line) + len(word) > 140:
            print(line)
            line = ""
        line += " " * bool(line) + word
    print(line)


def main():
    if sys.argv[1] == "keep":
        return keep(sys.argv[2])
    census = Census(sys.argv[2])
    rows, count, bare, failed = [], collections.Counter(), [], []
    for wheel in census.rows:
        verdict, parts, why, used, broken = census.judge(wheel)
        count[verdict] += 1
        if verdict == "does not run":
            failed.append(f"{wheel.name} ({'; '.join(sorted(why)[:2])})")
        elif not wheel.files:
            bare.append(wheel.name)
        said = {"runs in part": "runs but for " + ", ".join(sorted(parts)), "does not run": "does not run: " + "; ".join(sorted(why)[:SHOWN]),
                "runs": "runs" if wheel.files else "runs: no CUDA in its files"}[verdict]
        refused = [n for f in wheel.files for n in f["unserved"] + f["lacking"]]
        by_name = [n for f in wheel.files for n, where in f["by_name"].items() if where == "missing"]
        rows.append(f"| {wheel.name} | {wheel.version} | {wheel.mb} | {runtimes(wheel.files)} | {len(wheel.files) - broken} of "
                    f"{len(wheel.files)} | {said} | {', '.join(sorted(used - {wheel.name}))} | {some(refused)} | {some(by_name)} |")
    run = count["runs"] + count["runs in part"]
    print(f"**{run} of {len(rows)} wheels run**: with {count['runs']} nothing is in the way, and {count['runs in part']} run but for parts that "
          f"their rows name. {count['does not run']} do not run. The aim was 90 of 104.")
    if failed:
        paragraph(f"Those that do not run: {', '.join(failed)}.")
    if bare:
        paragraph(f"Of those that run, {len(bare)} have no CUDA in their own files, so that only other packages decide: {', '.join(bare)}.")
    if census.lost:
        paragraph(f"Not read, because they could not be fetched or were left out: {', '.join(census.lost)}.")
    print("\n| wheel | version | MB | runtime | files | verdict | with | refused calls | by name |\n|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    return None


if __name__ == "__main__":
    sys.exit(main())
