"""What was made already is made once, in any number of threads, and never more than the bound is kept."""

import ast
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import numpy as np
import pytest
from sympy import Symbol

import odesim
from odesim.base.memo import IdentityKey, Memo
from odesim.symbolic import System
from tests.support.systems import SOURCE

THREADS = 8


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work) -> list:
    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(work, n) for n in range(THREADS)]]


def test_each_value_is_made_once():
    """All threads ask for one key at the same time: one makes it, all get the same object."""
    memo, made, start = Memo[object](), [], Barrier(THREADS, timeout=600)

    def work(n: int) -> object:
        start.wait()

        def make() -> object:
            made.append(n)
            return object()

        return memo("key", make)

    assert len(set(map(id, in_threads(work)))) == len(made) == 1


def test_threads_wait_for_no_other_key():
    """A key that takes long keeps nobody from another."""
    memo, begun, go_on = Memo[int](), Event(), Event()

    def slow() -> int:
        begun.set()
        assert go_on.wait(60)
        return 1

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(memo, "slow", slow)
        assert begun.wait(60)
        assert memo("other", lambda: 2) == 2
        go_on.set()
        assert first.result() == 1


def test_failure_is_not_kept():
    """What making raises goes to who asked; the next one makes it again."""
    memo = Memo[int]()
    with pytest.raises(ZeroDivisionError):
        memo("key", lambda: 1 // 0)
    assert memo("key", lambda: 3) == 3


def test_many_keys_in_many_threads(often):
    """More keys than the bound, asked for in every order: the right value each time, and never more than the bound."""
    memo = Memo[int](7)

    def work(n: int) -> None:
        for k in np.random.default_rng(n).integers(0, 30, 2000).tolist():
            assert memo(IdentityKey(KEYS[k]), lambda: k * k) == k * k  # noqa: B023  called at once
            assert len(memo) <= 7

    KEYS = [object() for _ in range(30)]
    in_threads(work)
    memo.clear()
    assert len(memo) == 0


def decay(rate: int) -> System:
    x = Symbol("x", real=True)
    return System("made.often", SOURCE, {}, {x: -rate * x}, (), {x: 1.0}, observables={"twice": 2 * x})


@pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=pytest.mark.slow)])
def test_systems_in_many_threads(backend, often):
    """Threads that build, compile and integrate Systems, of their own and shared ones, have what one thread has."""
    shared = [decay(rate) for rate in range(1, 4)]

    def work(n: int) -> None:
        for rate, system in [*enumerate(shared, 1), (n + 4, decay(n + 4))]:
            run = odesim.integrate(system, backend=backend, method="euler", step=0.25, save=2)
            assert run.y["x"][-1] == (1 - rate / 4) ** 4
            assert run.observables["twice"][-1] == 2 * run.y["x"][-1]

    in_threads(work)


def names_of_dicts(tree: ast.Module) -> set[str]:
    """Names at the top of a module that begin as a dict."""
    tops = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [(target, node.value) for node in tops for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return {target.id for target, value in targets if isinstance(target, ast.Name) and isinstance(value, ast.Dict | ast.DictComp)}


@pytest.mark.slow
def test_no_other_memo_is_written_by_hand():
    """No dict at the top of a module is written to by its functions: what is kept in a process is kept by a Memo or functools."""
    found = []
    for path in sorted(Path(odesim.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text())
        inside = [node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)]
        stores = [node.value for node in inside if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)]
        written = {value.id for value in stores if isinstance(value, ast.Name)}
        found += [f"{path.name}: {name}" for name in sorted(names_of_dicts(tree) & written)]
    assert found == []
