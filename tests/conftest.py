"""What holds for all tests: those that need a GPU are skipped where there is none, and Ctrl-C is what it is in a terminal."""

import gc
import os
import re
import signal
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from odesim.base.device import cupy_here
from odesim.base.errors import CodegenError

# on a busy machine an example may take any time, and a process of a cluster minutes to answer
for name in ("CONNECT", "TCP"):
    os.environ.setdefault(f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name}", "600s")
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


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
SAMPLED = {
    law: (int(n), int(m or 1)) for n, m, law in re.findall(r"^(\d)(?:/(\d))? (.+)$", (HERE / "samples.txt").read_text("utf-8"), re.M)
}
"""{law: (n, m)}: laws over large tables. Of the cases one in n or so runs by default, chosen by its name; of the slow ones one in m stays
slow, and the others are rare."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the markers slow and rare to the cases in slow.txt, and to those of a law in samples.txt that are not in the sample."""
    for item in items:
        name = item.nodeid
        n, m = SAMPLED.get(name.partition("[")[0], (1, 1))
        turn, left_out = divmod(crc32(name.encode()), n)
        if name in SLOW or left_out:
            item.add_marker(pytest.mark.slow)
        if turn % m and item.get_closest_marker("slow"):
            item.own_markers = [marker for marker in item.own_markers if marker.name != "slow"]
            item.add_marker(pytest.mark.rare)


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

    monkeypatch.setattr("odesim.api.manifest.chunk_size", lambda count, row: min(SIZE, count))
