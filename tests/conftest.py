"""What holds for all tests: those that need a GPU are skipped where there is none."""

import pytest

from odesim.errors import CodegenError
from odesim.gpu import cupy_here


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test with the marker gpu, saying what is missing."""
    if item.get_closest_marker("gpu"):
        try:
            cupy_here()
        except CodegenError as error:
            pytest.skip(str(error))
