# SPDX-License-Identifier: GPL-2.0-or-later
"""For pytest, as a plugin: the fixture that Numba's tests expect from a configuration that is not installed with them."""
import pytest


@pytest.fixture
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
