#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What CUDA 12's header and CUDA 13's say differently is converted, and nothing else.

usage: declarations.py SYMS FIELDS INCLUDE12 INCLUDE13
SYMS is cudart12.syms, FIELDS the output of fields.c, INCLUDE12 and INCLUDE13 folders, with ":" between them. Prints what is wrong, and ends with 1.
"""
import re
import subprocess
import sys

# The runtime's headers do not declare these: they are for the code that nvcc generates, for graphics,
# or programs compiled for CUDA 12 call a later form.
UNDECLARED = re.compile(r'__cuda|cuda(GL|VDPAU|EGL|GraphicsGL|GraphicsVDPAU|GraphicsEGL)|cudaEventCreateFromEGLSync$'
                        r'|cudaGraphicsResourceGetMappedEglFrame$')
EARLIER = {'cudaGetDeviceProperties', 'cudaStreamGetCaptureInfo', 'cudaSignalExternalSemaphoresAsync',
           'cudaWaitExternalSemaphoresAsync'}
# Exported and in no header any more.
GONE = {'cudaDeviceGetSharedMemConfig', 'cudaDeviceSetSharedMemConfig', 'cudaFuncSetSharedMemConfig'}
# Structures that differ only in a way that no caller sees.
HARMLESS = {'union cudaLaunchAttributeValue'}  # one more member, and no larger
# Numbers that have got another name.
RENAMED = {'cudaCGScopeMultiGrid', 'cudaDevAttrCooperativeMultiDeviceLaunch',
           'cudaDevAttrMaxTimelineSemaphoreInteropSupported', 'cudaDevAttrMax'}


def squeeze(text):
    return re.sub(r'\s+', ' ', text).strip()


RUNTIME = '#define __CUDA_API_VERSION_INTERNAL\n#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n'


def header(include, source=RUNTIME):
    folders = ['-I' + folder for folder in include.split(':')]
    text = subprocess.run(['gcc', '-E', '-P', '-xc', *folders, '-'], input=source, check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    return squeeze(re.sub(r'__attribute__\(\((?:[^()]|\([^()]*\))*\)\)', '', text))


def functions(text):
    found = {}
    for m in re.finditer(r'extern ([^;{}()]*?)\b(\w*cuda\w+)\s*\(([^;{}]*)\) *;', text):
        parameters = []
        for p in m[3].split(','):
            p = squeeze(re.sub(r'([*\[\]])', r' \1 ', p))
            # The name is the last word, after at least one word of the type.
            parameters.append(re.sub(r'(?<=[\w*]) \w+$', '', p) if p != 'void' else p)
        found[m[2]] = squeeze(m[1]) + '(' + ', '.join(parameters) + ')'
    return found


def types(text):
    found = {}
    for m in re.finditer(r'\b(struct|union|enum)\s+(\w+)?\s*\{', text):
        depth, i = 1, m.end()
        while depth:
            depth += {'{': 1, '}': -1}.get(text[i], 0)
            i += 1
        name = m[2]
        if not name:
            after = re.match(r'\s*(\w+)\s*;', text[i:])
            name = after and after[1]
        if name:
            found[m[1] + ' ' + name] = squeeze(text[m.end():i - 1])
    return found


def values(body, known=None):
    """Name and number of each enumerator; a name whose number is not written down counts on. known: enumerators of other
    types."""
    found, number = {}, -1
    for part in filter(None, (p.strip() for p in body.split(','))):
        name, _, value = (s.strip() for s in part.partition('='))
        if value:
            value = re.sub(r'(?<=\d)u\b', '', value)
            number = eval(value, dict(known or {}), found)
        else:
            number += 1
        found[name] = number
    return found


def main():
    syms = [line.split() for line in open(sys.argv[1]) if not line.startswith('#')]
    fields = {line.split()[0] for line in open(sys.argv[2])}
    text12, text13 = header(sys.argv[3]), header(sys.argv[4])
    f12, f13, t12, t13 = functions(text12), functions(text13), types(text12), types(text13)
    wrong = []

    # Structures that differ, and those that contain them.
    differ = {t for t in t12 if t in t13 and t12[t] != t13[t] and not t.startswith('enum')} - HARMLESS
    grown = True
    while grown:
        more = {t for t in t12 for d in differ if re.search(r'\b%s\b(?! *\*)' % d.split()[1], t12[t])} - differ
        more = {t for t in more if t.split()[1] not in ('res', 'handle', 'params')}
        differ |= more
        grown = bool(more)
    differ -= {'union res'}

    for name, target in syms:
        declared = f12.get(name)
        plain = name[:-5] if name.endswith('_ptsz') or name.endswith('_ptds') else name
        if declared is None and plain not in EARLIER | GONE and not UNDECLARED.match(name):
            wrong.append(name + ': the header of CUDA 12 does not declare it')
        if target == 'converted' or declared is None:
            continue
        if target not in f13:
            wrong.append('%s: the header of CUDA 13 does not declare %s' % (name, target))
        elif declared != f13[target]:
            wrong.append('%s is not converted:\n\t12: %s\n\t13: %s' % (name, declared, f13[target]))
        for t in sorted(differ):
            if re.search(r'\b%s\b' % t.split()[1], declared):
                wrong.append('%s is not converted, but %s differs' % (name, t))

    for t in sorted(differ):
        outer = t.split()[1]
        if not any(f.startswith(outer + '.') for f in fields):
            wrong.append('%s differs, and no field of it is compared' % t)
            continue
        # Fields of inner structures are named with the path to them.
        body = re.sub(r'\{[^{}]*\}', '', re.sub(r'\{[^{}]*\{.*\}[^{}]*\}', '', t12[t]))
        for field in re.findall(r'(\w+)(?:\[\d+\])? *;', body):
            if outer + '.' + field not in fields:
                wrong.append('%s.%s is not compared' % (outer, field))

    for t in sorted(t for t in t12 if t in t13 and t.startswith('enum')):
        old, new = values(t12[t]), values(t13[t])
        for name, number in old.items():
            if name not in RENAMED and new.get(name) != number:
                wrong.append('%s of %s is %s in CUDA 12 and %s in 13' % (name, t, number, new.get(name)))

    print('%d functions, %d structures that differ' % (len(syms), len(differ)))
    if len(f12) < 300 or len(f13) < 300 or not differ:
        wrong.append('the headers were not understood')
    for line in wrong:
        print(line)
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
