"""Members under `auto`: each has the method that its own run calls for, and the bits of that method by its name."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.ensembles.request import METHOD_NAMES
from odesim.run.engines import HandOver, allowance
from odesim.stepper.codes import Status

MU = np.array([[0.5, 1.5], [4.8, 3.0], [2.5, 0.7], [2.0, 2.0], [6.0, 7.0], [1.0, 2.2], [5.5, 0.5]])
RODAS = METHOD_NAMES.index("rodas5p")

slow = pytest.mark.slow
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "end": ({}, ()),
    "grid": ({"save": [0.0, 0.2, 1.0, 5.0], "observe": "gap", "max_events": 3}, ()),
    "no events": ({"max_events": 0}, slow),
    "strict": ({"strict": True, "save": 5}, slow),
    "tight": ({"rtol": 1e-9, "max_events": 0}, slow),
    "float32": ({"dtype": "float32", "rtol": 1e-4, "atol": 1e-6, "max_steps": 20_000}, slow),
    "sensitivities": ({"sensitivities": "mu", "span": (0.0, 1.0)}, slow),
    "starts": ({"vary": {"v": np.linspace(0.01, 0.1, 14).reshape(7, 2)}, "save": 2}, ()),
    "rescaled": ({"clock": "rescaled", "max_events": 0, "span": (0.0, 1.0)}, slow),
}


def same(one: Any, other: Any) -> bool:
    """Whether all that is known of members is the same, bit for bit."""
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one.data_vars)


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(name, marks=marks) for name, (_, marks) in CASES.items()])
def test_a_member_has_its_own_method(case: str) -> None:
    """Stiff members among others are done by rodas5p, and each member has the bits of an ensemble of its own and of its method by name."""
    more: dict[str, Any] = dict(CASES[case][0])
    vary = more.pop("vary", {})
    made = odesim.ensemble("joma.nonlinear", params={"mu": MU}, vary=vary, **more)
    names = [METHOD_NAMES[k] for k in made.method.values]
    assert made.attrs["method"] == "auto" and list(made.attrs["method_names"]) == list(METHOD_NAMES)
    assert not made.status.any() and "rodas5p" in made.attrs["auto"]
    if case != "rescaled":  # the choice of a single run there
        assert [name == "rodas5p" for name in names] == [mu.max() > 4 for mu in MU]
    for name in set(names):
        at = [i for i, own in enumerate(names) if own == name]
        part = {k: v[at] for k, v in vary.items()}
        assert same(made.isel(member=at), odesim.ensemble("joma.nonlinear", params={"mu": MU[at]}, vary=part, method=name, **more))
    for i in (0, 4):
        alone = odesim.ensemble("joma.nonlinear", params={"mu": MU[i : i + 1]}, vary={k: v[i : i + 1] for k, v in vary.items()}, **more)
        assert same(made.isel(member=[i]), alone)


def test_order_threads_and_chunks(small_chunks: Any, tmp_path: Any) -> None:
    """Neither the order of the members nor threads, chunks, shards or a resume change a bit or a method."""
    mu = np.tile(MU, (4, 1)) * np.linspace(0.9, 1.05, 28)[:, None]
    made = odesim.ensemble("joma.nonlinear", params={"mu": mu})
    order = np.random.default_rng(0).permutation(28)
    turned = odesim.ensemble("joma.nonlinear", params={"mu": mu[order]}, threads=2)
    assert 0 < (made.method == RODAS).sum() < 28 and same(made.isel(member=order), turned)
    out: dict[str, Any] = {"params": {"mu": mu}, "out": tmp_path / "run.zarr"}
    odesim.ensemble("joma.nonlinear", shard=(2, 3), **out)
    stored = odesim.ensemble("joma.nonlinear", resume=True, threads=2, **out).load()
    assert same(made, stored) and stored.attrs["method"] == "auto"


def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(method, members) of every run of lanes from here on."""
    from odesim.run.lanes import LaneEngine

    found: list[tuple[str, int]] = []
    integrate = LaneEngine.integrate

    def counted(self: LaneEngine, params: Any, initial: Any, count: int, *more: Any, **named: Any) -> Any:
        found.append((self.request.options.method, count))
        return integrate(self, params, initial, count, *more, **named)

    monkeypatch.setattr(LaneEngine, "integrate", counted)
    return found


@pytest.mark.slow
def test_nobody_stiff_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that stability does not limit are integrated once, by one method, and no stiff kernel is made: short and long runs, and
    runs that blow up, by which no member is begun again."""
    monkeypatch.setattr(HandOver, "stiff", property(lambda self: pytest.fail("a stiff method was asked for")))
    found = runs(monkeypatch)
    mu = np.linspace(0.5, 2.5, 200).reshape(100, 2)
    cases = (("joma.nonlinear", {"mu": mu}, (0.0, 5.0)), ("joma.linear", {"Delta": np.linspace(0.5, 2.0, 40).reshape(20, 2)}, (0.0, 50.0)))
    for model, params, span in cases:
        made, count = odesim.ensemble(model, params=params, span=span), len(next(iter(params.values())))
        named = odesim.ensemble(model, params=params, span=span, method="tsit5")
        assert same(made, named) and found == [("tsit5", count)] * 2
        found.clear()
    assert (made.status == Status.BLOW_UP.number).any()


@pytest.mark.parametrize("most", [20, 60, 1000])
def test_max_steps_by_both(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither method may take the steps it needs the member ends as max_steps, where the one that came further is, after few runs."""
    found = runs(monkeypatch)
    made = odesim.ensemble("joma.nonlinear", params={"mu": MU}, max_steps=most)
    assert len(found) <= 12
    named = {name: odesim.ensemble("joma.nonlinear", params={"mu": MU}, max_steps=most, method=name) for name in ("tsit5", "rodas5p")}
    best = np.maximum(*(run.t_end.values for run in named.values()))
    assert (made.t_end.values == best).all()
    for i, k in enumerate(made.method.values):
        assert same(made.isel(member=[i]), named[METHOD_NAMES[k]].isel(member=[i]))


def test_a_trial_may_cost_half_of_all_steps() -> None:
    """The least power of two that is half of all steps, or those tried if that is more, by a loop."""
    rng = np.random.default_rng(0)
    tried, left = rng.integers(100, 1000, 50), rng.integers(1, 100_000, 50)
    for steps, n, rest in zip(allowance(tried, left), tried, left, strict=True):
        least = 1
        while least < n or 2 * least < n + rest:
            least *= 2
        assert steps == least
