# SPDX-License-Identifier: GPL-2.0-or-later
"""`qcu check --all`: broken wheels and folders first, then wheels and folders made here from programs that make
has built, and from small libraries.

	whole.py BUILD CASE"""

import io
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import zipfile

BUILD, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
PROGRAMS = BUILD + "/tests/loader/"
TMP = os.path.realpath(tempfile.mkdtemp())
# Whatever is unpacked lies in there, and is gone afterwards.
SCRATCH = TMP + "/scratch"
os.mkdir(SCRATCH)
ENV = {**os.environ, "TMPDIR": SCRATCH, "QCU_BUILD": BUILD}
ENV.pop("LD_LIBRARY_PATH", None)


def check(path, code, *texts, nothing=()):
    """qcu check --all must end with this code and say these texts, and leave nothing behind."""
    done = subprocess.run(["scripts/qcu", "check", "--all", path], capture_output=True, text=True, env=ENV, timeout=250)
    said = done.stdout + done.stderr
    print(f"$ qcu check --all {path}\n{said}")
    assert done.returncode == code, f"exit code {done.returncode}, not {code}"
    for text in texts:
        assert text in said, f"does not say: {text}"
    for text in nothing:
        assert text not in said, f"says: {text!r}"
    assert "Traceback" not in said
    assert not os.listdir(SCRATCH), os.listdir(SCRATCH)


def wheel(name, files, change=None):
    """A wheel with these files: (name or entry, content)."""
    path = f"{TMP}/{name}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for entry, content in files:
            z.writestr(entry, content)
    if change:
        with open(path, "rb") as f:
            data = change(bytearray(f.read()))
        with open(path, "wb") as f:
            f.write(data)
    return path


def content(name):
    with open(PROGRAMS + name, "rb") as f:
        return f.read()


def library(path, code="", *flags):
    """Compiles a library. What is not defined in it stays so."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    name = os.path.basename(path)
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed", "-o", path, "-x", "c", "-", "-x", "none",
                    *flags, *([] if any("soname" in f for f in flags) else [f"-Wl,-soname,{name}"])],
                   input=code, text=True, check=True)
    return path


# ---- what must be refused ----

def case_broken_zip():
    good = wheel("good", [("a/linked", content("linked"))])
    with open(good, "rb") as f:
        data = f.read()
    words = {"tail": "is no good wheel"}
    for name, bad in (("empty", b""), ("text", b"no wheel at all"), ("short", b"PK"), ("end", data[-22:]),
                      ("cut", data[:len(data) // 2]), ("tail", data[len(data) // 2:]),
                      ("spoiled", data[:5000] + bytes([data[5000] ^ 255]) + data[5001:])):
        with open(f"{TMP}/{name}", "wb") as f:
            f.write(bad)
        check(f"{TMP}/{name}", 2, words.get(name, "cannot be read"))
    check(f"{TMP}/gone", 2, "gone cannot be read: No such file or directory\n", nothing=["Errno"])
    os.mkfifo(f"{TMP}/fifo")
    check(f"{TMP}/fifo", 2, "is no file and no folder")


def case_zip_leads_out():
    for name in ("../out", "a/../../out", TMP + "/out", "a\\..\\..\\out", "a/" + "x" * 3000):
        check(wheel("leads", [("a/linked", content("linked")), (name, content("linked"))]), 2, "leads out of it")
        assert not os.path.exists(TMP + "/out")
    check(wheel("terminal", [("../\x1b[31m", content("linked"))]), 2, "leads out", nothing=["\x1b"])
    # A link in a wheel is a file with the link's target in it, and is not written.
    link = zipfile.ZipInfo("a/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    check(wheel("link", [(link, "/" + "x" * 100), ("a/host", content("host"))]), 3, "1 programs and libraries")
    # A program that says that it is a link is read as a program.
    check(wheel("link", [(link, content("linked"))]), 0)
    # A file in place of a folder, and the same file twice.
    check(wheel("twice", [("a", content("host")), ("a/b", content("host"))]), 2, "cannot be read")
    check(wheel("twice", [("a", content("host")), ("a", content("host"))]), 2, "cannot be read")


def set_sizes(data, packed, unpacked):
    """Other sizes in the list of a wheel's files, for the first of them."""
    at = data.index(b"PK\x01\x02")
    for offset, value in ((20, packed), (24, unpacked)):
        if value is not None:
            struct.pack_into("<I", data, at + offset, value)
    return data


def case_zip_bomb():
    zeros = io.BytesIO(bytes(100 << 20)).getvalue()
    check(wheel("bomb", [("a/zeros", b"\x7fELF" + zeros)]), 2, "which is too much")
    one = [("a/linked", content("linked"))]
    check(wheel("sizes", one, lambda d: set_sizes(d, None, 0xfffffff0)), 2, "which is too much")
    check(wheel("sizes", one, lambda d: set_sizes(d, 0xfffffff0, None)), 2, "overlap")
    # It says that it is smaller than it is: no more is read, and the checksum is another.
    check(wheel("sizes", one, lambda d: set_sizes(d, None, 5000)), 2, "cannot be read")

    def encrypt(data):
        data[data.index(b"PK\x01\x02") + 8] |= 1
        return data
    check(wheel("encrypted", one, encrypt), 2, "is encrypted")
    with zipfile.ZipFile(TMP + "/lzma.whl", "w", zipfile.ZIP_LZMA) as z:
        z.writestr("a/linked", content("linked"))
    check(TMP + "/lzma.whl", 2, "unusual way")

    def overlap(data):  # each entry of the list is the first file
        first = data.index(b"PK\x01\x02")
        second = data.index(b"PK\x01\x02", first + 4)
        struct.pack_into("<I", data, second + 42, 0)
        return data
    same = content("host")
    check(wheel("overlap", [("a", same), ("b", same)], overlap), 2, "cannot be read")
    check(wheel("many", [(f"{i:x}", "") for i in range(100001)]), 2, "has more than 100000 files")


def case_loop_of_links():
    os.makedirs(TMP + "/f/a/b")
    os.symlink("..", TMP + "/f/a/b/up")
    os.symlink("self", TMP + "/f/self")
    os.symlink(TMP, TMP + "/f/all")
    os.symlink(PROGRAMS + "linked", TMP + "/f/out")
    os.symlink("/dev/zero", TMP + "/f/endless")
    os.mkfifo(TMP + "/f/fifo")
    shutil.copy(PROGRAMS + "linked", TMP + "/f/a/linked")
    os.symlink("a/linked", TMP + "/f/inside")
    check(TMP + "/f", 0, "2 programs and libraries", nothing=["out:", "endless"])


def case_bad_programs():
    os.mkdir(TMP + "/f")
    for name, data in (("cut", content("linked")[:40]), ("head", b"\x7fELF" + b"\xff" * 100),
                       ("segments", content("linked")[:64])):
        with open(f"{TMP}/f/{name}", "wb") as f:
            f.write(data)
    check(TMP + "/f", 2, "cut: not known", "3 programs and libraries")
    name = "lib\x1b[31m.so"
    odd = library(f"{TMP}/x/{name}")
    library(f"{TMP}/g/libneeds.so", "", odd, BUILD + "/qcu-library/libcudart.so.13", "-Wl,-soname,libneeds.so")
    check(TMP + "/g", 2, "lib?[31m.so", nothing=["\x1b"])


# Wherever a library ends, and whichever of its bytes is another, qcu-check ends by itself.
def case_facts_of_spoiled():
    ours = BUILD + "/qcu-library/libcublas.so.13"
    good = library(TMP + "/good.so", "int cublasNever(void); int f(void) { return cublasNever(); }", ours, "-Wl,-z,now")
    with open(good, "rb") as f:
        data = f.read()
    files = [data[:at] for at in range(0, len(data), len(data) // 150)]
    for at in range(0, len(data), len(data) // 300):
        files += [data[:at] + b"\xff" * 8 + data[at + 8:], data[:at] + bytes(8) + data[at + 8:]]
    for bad in files:
        with open(TMP + "/bad.so", "wb") as f:
            f.write(bad)
        done = subprocess.run([BUILD + "/qcu-library/qcu-check", "--facts", TMP + "/bad.so"], capture_output=True, timeout=60)
        assert done.returncode in (0, 2), done
        assert all(b"\n" == bytes([c]) or 32 <= c < 127 for c in done.stdout), done
    assert len(files) > 700


# ---- what is missing or refused ----

def case_missing():
    for name in ("libnvcomp.so.5", "libnvshmem_host.so.3", "libnvimgcodec.so.0", "libcuobjclient.so.1", "libcupti.so.13",
                 "libcusparseLt.so.0", "libnppc.so.99", "libcutensor.so.2"):
        library(f"{TMP}/away/{name}")
        library(f"{TMP}/{name}.d/libuser.so", "", f"{TMP}/away/{name}")
        check(f"{TMP}/{name}.d", 1, "libuser.so: does not run", f"needs {name}, which is missing")
        check(f"{TMP}/{name}.d/libuser.so", 1, f"needs {name}, which is missing")
    # Another's library is not known.
    library(f"{TMP}/away/libother.so.1")
    library(f"{TMP}/other/libuser.so", "", f"{TMP}/away/libother.so.1", BUILD + "/qcu-library/libcudart.so.13")
    check(f"{TMP}/other", 2, "libuser.so: not known", "needs what is not here: libother.so.1")


# A shared runtime under a name of its own: another library, none, and a copy of NVIDIA's.
def case_renamed():
    for name in ("libcudart-53d54daa.so.13.6.68", "libcudart.3eda8113.so.13", "libcudart.so.13.0.96"):
        folder = f"{TMP}/{name}.d"
        copy = library(f"{folder}/x.libs/{name}")
        user = library(f"{folder}/libuser.so", "int cudaEGLStreamConsumerConnect(void); int f(void) { return "
                       "cudaEGLStreamConsumerConnect(); }", copy, "-Wl,-rpath,$ORIGIN/x.libs")
        for path in (folder, user):
            check(path, 1, "the name of NVIDIA's shared runtime, which is not in it", f"needs {name}, which does not run")
        os.remove(copy)
        check(folder, 1, f"needs {name}, which is missing")
        shutil.copy("/usr/local/cuda/lib64/libcudart.so.13", copy)
        texts = "(copy of the runtime of CUDA 13)", 'calls that answer "not supported": cudaEGLStreamConsumerConnect\n'
        check(folder, 0, *texts)
        check(user, 0, texts[1])
        subprocess.run([sys.executable, "tests/loopback/loader/rename.py", copy, name], check=True)
        check(wheel("copy", [(os.path.relpath(p, folder), open(p, "rb").read()) for p in (copy, user)]), 0, *texts)
        with open(copy, "r+b") as f:  # without section headers
            f.seek(40)
            f.write(bytes(8))
        check(folder, 1, "it lacks the names of its functions", f"needs {name}, which does not run")
    # Others of NVIDIA's names stay missing.
    library(f"{TMP}/away/libcudart.so.11.0")
    library(f"{TMP}/old/libuser.so", "", f"{TMP}/away/libcudart.so.11.0")
    check(f"{TMP}/old", 1, "needs libcudart.so.11.0, which is missing")


# What a library cannot do, no user of it can, also where libraries need one another.
def case_in_turn():
    shutil.copy(PROGRAMS + "wholly_static", TMP)
    bad = f"{TMP}/f/nvidia/npp/lib/libnppc.so.13"
    library(f"{TMP}/away/libcupti.so.13")
    library(bad, "", f"{TMP}/away/libcupti.so.13")
    library(f"{TMP}/f/a/libone.so", "", bad)
    library(f"{TMP}/f/a/libtwo.so", "", f"{TMP}/f/a/libone.so", "-Wl,-rpath,$ORIGIN")
    library(f"{TMP}/f/a/libone.so", "", bad, f"{TMP}/f/a/libtwo.so", "-Wl,-rpath,$ORIGIN")
    texts = ("libnppc.so.13: does not run", "needs libcupti.so.13, which is missing", "needs libnppc.so.13, which does not run",
             "needs libone.so, which does not run")
    check(TMP + "/f", 1, *texts)
    check(TMP + "/f/a/libtwo.so", 1, *texts)
    check(wheel("turn", [(os.path.relpath(p, TMP + "/f"), open(p, "rb").read())
                         for p in (bad, TMP + "/f/a/libone.so", TMP + "/f/a/libtwo.so")]), 1, *texts)


def case_calls():
    library(f"{TMP}/i/libcupti.so.13")
    user = library(f"{TMP}/i/libuser.so", "", f"{TMP}/i/libcupti.so.13", "-Wl,-rpath,$ORIGIN")
    for path in TMP + "/i", user:
        check(path, 0, "libuser.so: runs in part", "can be loaded and does not work: libcupti.so.13")
    code = "".join(f"int {f}(void); int call_{f}(void) {{ return {f}(); }}\n"
                   for f in ("cublasXtSspmm", "cublasCreate_v2", "cublasNever"))
    code += "int cublasWeak(void) __attribute__((weak)); int weak(void) { return cublasWeak(); }"
    ours = BUILD + "/qcu-library/libcublas.so.13"
    library(TMP + "/f/liblater.so", code, ours, "-Wl,-z,lazy")
    check(TMP + "/f", 0, "liblater.so: runs in part", "1 with CUDA: 0 run and 1 in part, 0 do not",
          'calls that answer "not supported": cublasXtSspmm\n', "calls that qCUDA does not have: cublasNever\n")
    library(TMP + "/g/libnow.so", code, ours, "-Wl,-z,now")
    check(TMP + "/g", 1, "libnow.so: does not run", "it cannot be loaded without cublasNever")
    done = subprocess.run([BUILD + "/qcu-library/qcu-check", TMP + "/f/liblater.so"], capture_output=True, text=True)
    assert "calls cublasXtSspmm: libcublas.so.13 of qCUDA answers" in done.stdout, done.stdout
    assert "calls cublasNever: libcublas.so.13 of qCUDA does not have it" in done.stdout, done.stdout


# ---- what runs ----

def case_runs():
    check(PROGRAMS + "linked", 0, "linked: runs (runtime of CUDA 13 linked in)")
    check(PROGRAMS + "needs", 0, "needs: runs")
    check(PROGRAMS + "host", 3)
    check(wheel("good", [("a/linked", content("linked")), ("a/x.py", "import cuda"), ("a/host", content("host"))]), 0,
          "a/linked: runs", "2 programs and libraries, 1 with CUDA: 1 run")
    check(wheel("part", [("linked", content("linked")), ("static", content("wholly_static"))]), 1,
          "static: does not run", "linked: runs", "1 run, 1 do not")
    # NVIDIA's own library with a runtime in it, that lies beside, runs as a program does.
    shutil.copytree(PROGRAMS + "wheels", TMP + "/f")  # a libcublas.so.13, in whose place qCUDA's is loaded
    own = TMP + "/f/nvidia/npp/lib"
    os.makedirs(own)
    shutil.copy(PROGRAMS + "plugin.so", own + "/libnppc.so.13")
    library(TMP + "/f/a/libuser.so", "", "-L" + own, "-l:libnppc.so.13", "-Wl,-rpath,$ORIGIN/../nvidia/npp/lib")
    check(TMP + "/f", 0, "libuser.so: runs", nothing=["libcublas.so.13: "])
    check(TMP + "/f/a/libuser.so", 0)
    done = subprocess.run([BUILD + "/qcu-library/qcu-check", TMP + "/f/a/libuser.so"], capture_output=True, text=True)
    assert done.returncode == 2 and "qcu check --all follows them" in done.stdout, done.stdout


def case_by_name():
    code = 'const char *names[] = {"libcupti.so.13", "libcublas.so.13", "/x/libnvrtc.so.99", "libcuda.so", "libcudaXlibcuda"};'
    library(TMP + "/f/libnames.so", code)
    check(TMP + "/f", 0, "loads by name (missing): libcupti.so.13, libnvrtc.so.99\n",
          "loads by name (qCUDA has it): libcublas.so.13, libcuda.so\n")
    done = subprocess.run(["scripts/qcu", "check", "--all", "--json", TMP + "/f"], capture_output=True, text=True, env=ENV)
    assert json.loads(done.stdout)["files"][0]["by_name"]["libcupti.so.13"] == "missing", done.stdout
    # What a census needs of a file: its names, and where its libraries are.
    library(TMP + "/away/libother.so.1")
    library(TMP + "/away/libcublas.so.11")
    library(TMP + "/n/libhere.so")
    library(TMP + "/n/libuser.so", "", *(f"{TMP}/{n}" for n in ("n/libhere.so", "away/libother.so.1", "away/libcublas.so.11")), "-lc")
    done = subprocess.run(["scripts/qcu", "check", "--all", "--json", TMP + "/n"], capture_output=True, text=True, env=ENV)
    said = json.loads(done.stdout)
    assert [o["names"] for o in said["others"]] == [["libhere.so"]], said
    assert said["files"][0]["needs"] == {"libhere.so": "here", "libother.so.1": "absent", "libcublas.so.11": "missing",
                                         "libc.so.6": "system"}, said


try:
    globals()["case_" + CASE]()
finally:
    shutil.rmtree(TMP)
