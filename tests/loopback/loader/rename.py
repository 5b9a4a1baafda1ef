# SPDX-License-Identifier: GPL-2.0-or-later
"""Gives a library another soname, of any length, as tools for Python's wheels do: the strings move to the end of the
file, into a segment of their own, which takes the place of the note segment.

	rename.py FILE SONAME"""

import struct
import sys

PATH, NAME = sys.argv[1], sys.argv[2].encode()
LOAD, DYNAMIC, NOTE = 1, 2, 4
STRTAB, STRSZ, SONAME = 5, 10, 14

with open(PATH, "rb") as f:
    data = bytearray(f.read())
phoff, shoff = struct.unpack_from("<QQ", data, 32)
phnum, _, shnum = struct.unpack_from("<HHH", data, 56)
segments = [(at, *struct.unpack_from("<IIQQQQQQ", data, at)) for at in range(phoff, phoff + 56 * phnum, 56)]
dynamic = next(s for s in segments if s[1] == DYNAMIC)
note = next(s for s in segments if s[1] == NOTE)
entries = {struct.unpack_from("<q", data, at)[0]: at + 8 for at in range(dynamic[3], dynamic[3] + dynamic[6], 16)}


def value(tag):
    return struct.unpack_from("<Q", data, entries[tag])[0]


# The strings are in the first segment, which begins at 0.
old = value(STRTAB)
strings = data[old:old + value(STRSZ)]
data += bytes(-len(data) % 4096)
offset = len(data)
addr = (max(s[4] + s[7] for s in segments if s[1] == LOAD) + 4095) // 4096 * 4096
struct.pack_into("<Q", data, entries[STRTAB], addr)
struct.pack_into("<Q", data, entries[SONAME], len(strings))
strings += NAME + b"\0"
struct.pack_into("<Q", data, entries[STRSZ], len(strings))
struct.pack_into("<IIQQQQQQ", data, note[0], LOAD, 4, offset, addr, addr, len(strings), len(strings), 4096)
for at in range(shoff, shoff + 64 * shnum, 64):
    if struct.unpack_from("<Q", data, at + 16)[0] == old:
        struct.pack_into("<QQQ", data, at + 16, addr, offset, len(strings))
data += strings
with open(PATH, "wb") as f:
    f.write(data)
