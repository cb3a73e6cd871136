"""What holds for all tests: those that need a GPU are skipped where there is none, and Ctrl-C is what it is in a terminal."""

import gc
import signal
from pathlib import Path
from zlib import crc32

import pytest

from odesim.base.gpu import cupy_here
from odesim.errors import CodegenError


def pytest_configure() -> None:
    """A job in the background begins with SIGINT ignored: a test that raises it would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # collecting the tests makes a million objects that stay


def pytest_collection_finish() -> None:
    """What is imported stays: the garbage collector looks at it no more, and at the rest less often (a tenth of all time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


HERE = Path(__file__).parent
SLOW = frozenset((HERE / "slow.txt").read_text(encoding="utf-8").splitlines())
"""Cases that take some seconds each, and are slow for that: of their laws the cheaper ones run by default."""
SAMPLED = {law: int(n) for n, law in (line.split(" ", 1) for line in (HERE / "samples.txt").read_text(encoding="utf-8").splitlines())}
"""{law: n}: laws over large tables. Of the cases one in n or so runs by default, chosen by its name; the others are slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the marker slow to the cases in slow.txt, and to those of a law in samples.txt that are not in the sample."""
    for item in items:
        name = item.nodeid
        if name in SLOW or crc32(name.encode()) % SAMPLED.get(name.partition("[")[0], 1):
            item.add_marker(pytest.mark.slow)


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
