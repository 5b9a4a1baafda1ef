#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""nvml.syms names every function that NVIDIA's header declares, and no other; a quiet one is one of a
device, and the argument that it looks at is a pointer.

usage: pointers.py SYMS HEADER
Prints what is wrong, and ends with 1.
"""
import re
import subprocess
import sys


def functions(header):
    text = subprocess.run(['gcc', '-E', '-P', '-xc', '-DNVML_NO_UNVERSIONED_FUNC_DEFS', header], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    text = re.sub(r'\s+', ' ', text)
    return {m[1]: [p.strip() for p in m[2].split(',')]
            for m in re.finditer(r'\b(nvml[A-Z]\w*) ?\(([^()]*)\) ?;', text)}


def main():
    declared = functions(sys.argv[2])
    listed = {}
    with open(sys.argv[1], encoding='utf-8') as syms:
        for line in syms:
            if not line.startswith('#'):
                name, *how = line.split()
                listed[name] = how
    wrong = [name + ': not in the list' for name in declared if name not in listed]
    wrong += [name + ': not in the header' for name in listed if name not in declared]
    for name, how in listed.items():
        parameters = declared.get(name, [])
        if how[0] == 'quiet' and parameters:
            n = int(how[1])
            if not parameters[0].startswith('nvmlDevice_t') or n > 5 or '*' not in (parameters + [''])[n]:
                wrong.append(f'{name}: argument {n} is no pointer of a device function')
    print('\n'.join(wrong) or f'{len(listed)} functions')
    sys.exit(bool(wrong))


main()
