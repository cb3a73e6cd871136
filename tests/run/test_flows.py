"""Laws of every engine on flows of one number with known answers: how a run ends, its error, its work."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support.engines import EVERY as ENGINES
from tests.support.engines import SINGLE, STIFF_STRICT, STRICT, TOGETHER, Engine, Members
from tests.support.flows import EVERY, FEW, FLOWS, OVERFLOW, members_of, menagerie
from tests.support.matrix import slow_but

GRID = np.linspace(0.0, 3.0, 13)
END = GRID[-1:]
CLOSE: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10, "max_steps": 20_000}
# a kernel each: by default one method in lanes, another one in strict lanes, and a stiff one with few flows
LANES = Engine("tsit5")
STRICT_LANES, STRICT_END = Engine("dop853", strict=True), Engine("vern7", strict=True)


def case(engine: Engine, names: tuple[str, ...] = EVERY) -> Any:
    """An engine and the flows that it is asked for."""
    short = names is FEW or engine in (*SINGLE, LANES, STRICT_LANES)
    return pytest.param(engine, names, id=f"{engine}{', few flows' * (names is FEW)}", marks=[] if short else pytest.mark.slow)


FEW_STIFF = case(Engine("rodas5p"), FEW)
ALL = pytest.mark.parametrize(("engine", "names"), [*map(case, ENGINES), FEW_STIFF])


@cache
def at_flows(engine: Engine, names: tuple[str, ...] = EVERY, *, end_only: bool = False, mixed: bool = False) -> Members:
    """A member for each flow, in their order or in that of shuffled()."""
    params, initial = ({name: rows[shuffled(names)] if mixed else rows for name, rows in given.items()} for given in members_of(names))
    return engine.run(menagerie(names), params, initial, END if end_only else GRID, **CLOSE)


def shuffled(names: tuple[str, ...]) -> np.ndarray:
    """Another order of the flows."""
    return np.random.default_rng(0).permutation(len(names))


def without_overflow(engine: Engine, names: tuple[str, ...]) -> list[int]:
    """Numbers of the flows that the engine is asked for.

    Where stages are summed before they are multiplied by h, or divided by it, these sums overflow before the state does.
    """
    fine = engine.strict or (not engine.together and not engine.stiff)
    return [i for i, name in enumerate(names) if fine or name != OVERFLOW]


@pytest.mark.first(1)
@ALL
def test_ends(engine, names):
    """Each flow has its status and its end beside all the others, exact states before the end and none after it."""
    found = at_flows(engine, names)
    for i in without_overflow(engine, names):
        name, flow = names[i], FLOWS[names[i]]
        assert (name, found.status[i]) == (name, flow.status)
        # an error in the state, some 10 to 100 tolerances, moves the end by as much
        assert found.t_end[i] == pytest.approx(flow.end, abs=1e-6)
        y = found.y["x"][i, :, 0]
        before, after = flow.end - 1e-3 > GRID, flow.end + 1e-3 < GRID
        assert np.isnan(y[after]).all()
        # near a pole an error grows as the solution does, by up to 100
        assert y[before] == pytest.approx(flow.exact(GRID[before], flow.x0, flow.a), rel=1e-5, abs=1e-9)


@pytest.mark.first(3)
@ALL
def test_no_end_takes_long(engine, names):
    """A run that cannot reach its end says so after some hundred attempts, for smaller and smaller steps; one that starts at NaN at
    once. A pole takes the stiff methods more, whose steps are as short as 1 / order of the digits asks."""
    attempts = at_flows(engine, names).attempts
    bounded = [i for i in without_overflow(engine, names) if names[i] != OVERFLOW]
    assert np.all(attempts[bounded] < (2500 if engine.stiff else 700)) and attempts[names.index("NaN at once")] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "end_only"),
    slow_but(
        [(e, end) for e in (*STRICT, *STIFF_STRICT) for end in (False, True)], [(STRICT_LANES, False), (STRICT_END, True)], several=True
    ),
    ids=str,
)
def test_strict_members_are_single_runs(engine, end_only):
    """In strict mode every flow has the bits, the end and the counts of `integrate`, whatever stands beside it."""
    together, single = (at_flows(e, end_only=end_only) for e in (engine, Engine(engine.method, together=False, strict=True)))
    np.testing.assert_array_equal(together.y["x"], single.y["x"])
    np.testing.assert_array_equal(together.t_end, single.t_end)
    assert together.status == single.status
    np.testing.assert_array_equal(together.steps, single.steps)
    np.testing.assert_array_equal(together.rejected, single.rejected)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "names"), [*map(case, TOGETHER), FEW_STIFF])
def test_any_order(engine, names):
    """Members in another order, in other lanes: the same bits and counts."""
    found, mixed = at_flows(engine, names), at_flows(engine, names, mixed=True)
    np.testing.assert_array_equal(mixed.y["x"], found.y["x"][shuffled(names)])
    for name in ("t_end", "steps", "rejected"):
        np.testing.assert_array_equal(getattr(mixed, name), getattr(found, name)[shuffled(names)])


TOLERANCES = np.array([1e-5, 1e-7, 1e-9, 1e-11])


def slope(over: Any, values: Any) -> float:
    """The exponent p of values ~ over^p."""
    return float(np.polyfit(np.log(over), np.log(values), 1)[0])


@pytest.mark.first(3)
@pytest.mark.parametrize(("engine", "names"), [*map(case, (*SINGLE, *TOGETHER)), FEW_STIFF])
def test_work_and_precision(engine, names):
    """Over six decades errors go as the tolerance, steps as its power 1 / error_order and as that of the error, -1 / order.

    Logistic flows with rates and starts of their own; of the error along a run their geometric mean.
    """
    count, rng, exact = 8 if engine.stiff else 24, np.random.default_rng(0), FLOWS["logistic"].exact
    rates, starts = rng.uniform(0.5, 1.5, (count, 1)), rng.uniform(0.05, 0.9, (count, 1))
    params = {"a": rates, "kind": np.zeros((count, 1))}
    errors, work = [], []
    for tol in TOLERANCES:
        found = engine.run(menagerie(names), params, {"x": starts}, GRID, rtol=tol, atol=tol)
        off = np.abs(found.y["x"][:, :, 0] - exact(GRID, starts, rates)).max(axis=1)
        # saved points are as good as the end; now and then an estimate happens to vanish, so not the largest of all members
        assert np.quantile(off, 0.9) < 20 * tol
        errors.append(np.exp(np.log(off).mean()))
        work.append(found.attempts.mean())
    order, power = engine.table.order, engine.table.error_order
    assert slope(TOLERANCES, errors) == pytest.approx(1, abs=0.25)
    # a constant number of small steps at the start flattens both
    assert -1.05 < order * slope(errors, work) < -0.65
    assert -1.05 < power * slope(TOLERANCES, work) < -0.65
    # a wrong digit in an embedded weight shows at the smallest tolerance
    assert work[3] / work[2] < 1.2 * 100 ** (1 / power)
