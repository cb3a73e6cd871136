"""What holds for all tests: those that need a GPU are skipped where there is none, and Ctrl-C is what it is in a terminal."""

import signal

import pytest

from odesim.base.gpu import cupy_here
from odesim.errors import CodegenError


def pytest_configure() -> None:
    """A job in the background begins with SIGINT ignored: a test that raises it would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test with the marker gpu, saying what is missing."""
    if item.get_closest_marker("gpu"):
        try:
            cupy_here()
        except CodegenError as error:
            pytest.skip(str(error))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 8 members, so that a few dozen are several."""
    from tests.support.begun import SIZE

    monkeypatch.setattr("odesim.api.ensemble_manifest.chunk_size", lambda count, row: min(SIZE, count))
