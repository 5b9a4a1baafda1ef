# SPDX-License-Identifier: GPL-2.0-or-later
"""For pytest, as a plugin: the fixture that Numba's tests expect from a configuration that is not installed with them, and
a name that Numba takes from older releases of NumPy."""
import numpy
import pytest

if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack


@pytest.fixture
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
