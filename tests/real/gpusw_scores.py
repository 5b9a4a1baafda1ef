# SPDX-License-Identifier: GPL-2.0-or-later
"""gpusw: alignment scores of sequences, beside its own reference on the CPU."""
import gpusw
import numpy as np

rng = np.random.default_rng(3)
queries = [''.join(rng.choice(list('ACGT'), 40)) for _ in range(4)]
refs = [''.join(rng.choice(list('ACGT'), 60)) for _ in range(5)]
for scheme in (gpusw.schemes.DNA, gpusw.schemes.DNA_GLOBAL, gpusw.schemes.DNA_SEMIGLOBAL):
    got = np.asarray(gpusw.align_score(queries, refs, scheme=scheme).scores)
    want = gpusw.cpu_reference_matrix(queries, refs, scheme)
    assert (got == want).all(), (scheme.mode, got, want)
print('gpusw: local, global and semiglobal scores are those of the CPU')
