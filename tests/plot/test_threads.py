"""Pictures drawn by many threads at once."""

import io
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import odesim
from odesim.run.integrate import integrate_problem

THREADS = 12


def test_threads_draw_at_once() -> None:
    """Threads that draw and save at once have the pictures of one, byte for byte, and leave matplotlib's settings as they were."""
    runs = [odesim.integrate("joma.nonlinear", sizes={"M": 2}, span=(0, 10.0**k), save=20, backend="numpy") for k in (0, 3)]
    settings, start = dict(mpl.rcParams), Barrier(THREADS, timeout=600)

    def picture(k: int) -> bytes:
        axes: Any = runs[k % 2].plot(var="v")
        figure = np.ravel(axes)[0].figure
        figure.savefig(out := io.BytesIO(), format="png", dpi=60)
        return out.getvalue()

    def together(k: int) -> bytes:
        start.wait()
        return picture(k)

    want = [picture(k) for k in range(2)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(together, range(THREADS)))
    assert [found[k] == want[k % 2] for k in range(THREADS)] == [True] * THREADS
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_one_run_is_computed_in_threads_at_once(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States between saved times: the bits of one thread. The right side has one memory, of its sums, and in numpy of arrays."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 2}, span=(0, 1.0), save=3, backend=backend)
    times, inside, most = np.linspace(0, 1, 57), list[int](), list[int]()
    want = run.dense(times)["v"]

    def watched(*arguments: Any, **options: Any) -> Any:
        inside.append(1)
        sleep(0.002)  # others come meanwhile, unless they wait
        most.append(len(inside))
        raw = integrate_problem(*arguments, **options)
        inside.pop()
        return raw

    monkeypatch.setattr("odesim.api.integrate.integrate_problem", watched)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: run.dense(times)["v"], range(4 * THREADS)))
    assert max(most) == 1 and all(np.array_equal(one, want) for one in found)
