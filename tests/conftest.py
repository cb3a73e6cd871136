"""What holds for all tests: those that need a GPU are skipped where there is none, and Ctrl-C is what it is in a terminal."""

import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Generator
from functools import cache, lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from odesim.base.device import cupy_here
from odesim.base.errors import CodegenError
from tests.support.cover import mark_slow

# on a busy machine an example may take any time, and a process of a cluster minutes to answer
for name in ("CONNECT", "TCP"):
    os.environ.setdefault(f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name}", "600s")
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure() -> None:
    """A job in the background begins with SIGINT ignored: a test that raises it would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    TERMINAL.append(os.dup(2))  # while tests run, another file is in its place
    gc.disable()  # collecting the tests makes a million objects that stay


def pytest_collection_finish() -> None:
    """What is imported stays: the garbage collector looks at it no more, and at the rest less often (a tenth of all time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    share_results()


def share_results() -> None:
    """Pure functions of other packages that tests call with the same arguments again and again, which these forget."""
    backend = sys.modules.get("matplotlib.backends.backend_agg")
    if backend is not None:  # each picture has a parser of formulas, which reads the same labels of ticks anew: a fifth of drawing
        parser = backend.MathTextParser
        parser._parse_cached = lru_cache(4096)(parser._parse_cached.__wrapped__)
        vars(backend)["MathTextParser"] = cache(parser)
    sympy = sys.modules.get("sympy.functions.elementary.miscellaneous")
    if sympy is not None:  # each change of a maximum compares all of its arguments anew: a tenth of a run with events
        connected: Any = cache(sympy.MinMaxBase._is_connected.__func__)
        sympy.MinMaxBase._is_connected = classmethod(connected)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves of each law a cover of its cases, and gives the others the marker slow."""
    mark_slow(items)


STUCK = 600
"""Seconds after which a test is stuck: the dearest takes some 30 where nothing else runs, some 250 beside 14 other processes."""
TERMINAL: list[int] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A test that waits for ever says where each thread is and ends its process, which pytest reports with the name of the test."""
    faulthandler.dump_traceback_later(STUCK, exit=True, file=TERMINAL[0])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


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
