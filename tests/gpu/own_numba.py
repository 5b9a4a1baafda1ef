# SPDX-License-Identifier: GPL-2.0-or-later
"""For pytest, as a plugin: what Numba's tests expect and is not installed with them. The fixture of a configuration,
the package that compares compilers' output (tests that use it fail), and a name that Numba takes from older releases
of NumPy."""
import importlib.util
import sys
import types

import numpy
import pytest

if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack

if not importlib.util.find_spec("filecheck"):
    sys.modules["filecheck"] = types.ModuleType("filecheck")
    for part, names in {"matcher": ["Matcher"], "options": ["Options"], "parser": ["Parser", "pattern_for_opts"],
                        "finput": ["FInput"]}.items():
        sys.modules[f"filecheck.{part}"] = types.ModuleType(part)
        vars(sys.modules[f"filecheck.{part}"]).update(dict.fromkeys(names))


@pytest.fixture
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
