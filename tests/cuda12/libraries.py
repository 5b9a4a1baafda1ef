#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the headers of a library say differently in CUDA 12 and 13 stands in its file NAME.cuda12, and nothing else.

usage: libraries.py NAME.cuda12 DECLARED HEADER INCLUDE12 INCLUDE13
DECLARED has the declarations of all functions that are served. INCLUDE12 and INCLUDE13 are folders, with ":" between
them. Prints what is wrong, and ends with 1.
"""
import re
import sys

sys.dont_write_bytecode = True
from declarations import header, types, values

# An end that moves, and what only a library of CUDA 12 returns.
HARMLESS = {'CUBLASLT_MATMUL_STAGES_END', 'CUFFT_INCOMPLETE_PARAMETER_LIST', 'CUFFT_PARSE_ERROR', 'CUFFT_LICENSE_ERROR'}
OURS = re.compile(r'\w+ (cu(blas|fft|solver)|cuda(Data|Emulation)|libraryProperty|syevj|gesvdj)')


def enumerations(all_types):
    """The values of each type that is an enumeration, which may be those of another one before it."""
    found, known = {}, {}
    for name in filter(OURS.match, all_types):
        if name.startswith('enum'):
            found[name] = values(all_types[name], known)
            known.update(found[name])
    return found


def main():
    words = [line.split('#')[0].split() for line in open(sys.argv[1])]
    taken = set(re.findall(r'\w+', open(sys.argv[2]).read()))
    source = ''.join('#include <%s>\n' % name for name in sys.argv[3].split())
    t12, t13 = (types(header(include, source)) for include in sys.argv[4:6])
    e12, e13 = enumerations(t12), enumerations(t13)

    def listed(word, kind):
        return {int(v, 0) for w in words if w[:2] == [word, kind] for v in w[2:]}

    status = [w for w in words if w[:1] == ['status']]
    returned = set(range(int(status[0][1], 0), int(status[0][2], 0) + 1)) if status else set()
    wrong, compared = [], 0
    for name in sorted(filter(OURS.match, t12)):
        kind = name.split()[1]
        compared += 1
        if name not in t13:
            wrong.append('CUDA 13 has no %s' % name)
        elif not name.startswith('enum'):
            if t12[name] != t13[name]:
                wrong.append('%s differs:\n\t12: %s\n\t13: %s' % (name, t12[name], t13[name]))
        else:
            old, new = e12[name], e13[name]
            both = old.keys() & new.keys()
            wrong += ['%s is %d in CUDA 12 and %d in 13' % (v, old[v], new[v]) for v in both - HARMLESS if old[v] != new[v]]
            later = {new[v] for v in new.keys() - both - HARMLESS} - set(old.values()) - returned
            gone = {old[v] for v in old.keys() - both - HARMLESS} - set(new.values())
            # A sum of flags may be listed, too. What no function takes need not be.
            for word, want in (('unknown', later), ('gone', gone)):
                if taken & {kind, kind[:-2]} and (want - listed(word, kind) or (listed(word, kind) and not want)):
                    wrong.append('%s: %s has %s, but these differ: %s' % (
                        kind, word, sorted(listed(word, kind)), sorted(want)))
    print("%s: %d types" % (sys.argv[3].strip(), compared))
    if compared < 4:
        wrong.append('the headers were not understood')
    for line in wrong:
        print(line)
    return bool(wrong)


sys.exit(main())
