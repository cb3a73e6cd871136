"""What the tests of GPU ensembles are held over: models, methods, and the text of an ensemble."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import odesim
from odesim.api.ensemble import ensemble_arguments, members_and_request
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run.choose import make_engine
from odesim.run.threads import DeviceEngine, source_of
from odesim.stepper.methods import METHODS as EXPLICIT
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from tests.support.models import FLOWS

if TYPE_CHECKING:
    import xarray

# models at a size that a thread holds, with a parameter that is a member's own
LISTED: dict[str, dict[str, Any]] = {
    "classics.committee": {"grid": {"sigma": "linspace(0.1,0.2,3)"}, "sizes": {"K": 1, "M": 1}},
    "classics.deep_linear": {"grid": {"a0": "linspace(0.1,0.2,3)"}, "sizes": {"d": 2}},
    "classics.deep_linear_modes": {"grid": {"s": "linspace(0.9,1.0,3)"}},
    "galore.parametric_gradient": {"grid": {"A": "linspace(0.9,1.0,3)"}, "sizes": {"m": 2, "n": 3, "N": 2}},
    "galore.projected": {"grid": {"period": "linspace(1.0,3.0,3)"}, "sizes": {"m": 2, "n": 3, "N": 2, "r": 1}, "span": (0.0, 6.0)},
    "gibbs.lumped": {"grid": {"b": "linspace(0.9,1.0,3)"}, "sizes": {"n": 3}},
    "gibbs.master": {"grid": {"J": "linspace(0.2,0.3,3)"}, "sizes": {"S": 4}},
    "gibbs.parallel": {"grid": {"J": "linspace(0.2,0.3,3)"}, "sizes": {"S": 4}},
    "gibbs.training_flow": {"grid": {"theta_star": "linspace(0.2,0.3,3)"}, "sizes": {"S": 4, "A": 2, "N": 4}},
    "hierarchy.covariance": {"grid": {"Sig_cx": "linspace(0.9,1.0,3)"}, "sizes": {"K0": 2, "K1": 2, "K2": 1, "C": 2}},
    "hierarchy.gated": {"grid": {"rho0": "linspace(0.8,0.9,3)"}},
    "hierarchy.grouped": {"grid": {"rho0": "linspace(0.8,0.9,3)"}},
    "hierarchy.multilayer": {"grid": {"X": "linspace(0.9,1.0,3)"}, "sizes": {"N": 2, "K0": 2, "K1": 2, "K2": 1, "C": 2}},
    "hopfield.graded": {"grid": {"g": "linspace(0.9,1.0,3)"}, "sizes": {"d": 3}},
    "hopfield.modern": {"grid": {"beta": "linspace(0.9,1.0,3)"}, "sizes": {"d": 3, "N": 2}},
    "hopfield.potts": {"grid": {"c": "linspace(0.9,1.0,3)"}, "sizes": {"N": 3}},
    "hopfield.two_layer": {"grid": {"beta": "linspace(0.9,1.0,3)"}, "sizes": {"d": 3, "N": 2}},
    "hopfield.two_patterns": {"grid": {"beta": "linspace(0.9,1.0,3)"}},
    "in_context.single_location": {"grid": {"lam": "linspace(0.09,0.1,3)"}},
    "induction.full": {"grid": {"eps": "linspace(0.1,0.2,3)"}, "sizes": {"N": 2, "V": 3, "S": 6}, "span": (0.0, 30.0)},
    "induction.stages": {"grid": {"V": "linspace(60,64,3)"}},
    "joma.cluster": {"grid": {"sigma": "linspace(0.9,1.0,3)"}, "sizes": {"M": 3}},
    "joma.joint_exp": {"grid": {"T": "linspace(0.9,1.0,3)"}, "sizes": {"Mc": 3, "K": 2, "N": 2, "C": 2}},
    "joma.joint_linear": {"grid": {"T": "linspace(0.9,1.0,3)"}, "sizes": {"Mc": 3, "K": 2, "N": 2, "C": 2}},
    "joma.joint_softmax": {"grid": {"T": "linspace(0.9,1.0,3)"}, "sizes": {"Mc": 3, "K": 2, "N": 2, "C": 2}},
    "joma.linear": {"grid": {"Delta": "linspace(0.9,1.0,3)"}},
    "joma.linear_attention": {"grid": {"Delta": "linspace(0.9,1.0,3)"}, "sizes": {"M": 3, "K": 2}},
    "joma.linear_bterm": {"grid": {"Delta": "linspace(0.9,1.0,3)"}},
    "joma.linear_multinode": {"grid": {"Delta": "linspace(0.9,1.0,3)"}, "sizes": {"M": 3, "K": 2}},
    "joma.linear_softmax": {"grid": {"Delta": "linspace(0.9,1.0,3)"}},
    "joma.nonlinear": {"grid": {"mu": "linspace(0.9,1.0,3)"}},
    "joma.nonlinear_log": {"grid": {"mu": "linspace(0.9,1.0,3)"}},
    "joma.nonlinear_softmax": {"grid": {"mu": "linspace(0.9,1.0,3)"}},
    "joma.reduced_exp": {"grid": {"T": "linspace(0.9,1.0,3)"}, "sizes": {"Mc": 3, "K": 2, "N": 2, "C": 2}},
    "joma.self_consistent": {"grid": {"c": "linspace(0.9,1.0,3)"}},
    "memory.softmax_regression": {"grid": {"M": "linspace(4,5,3)"}},
    "particles.circle": {"grid": {"beta": "linspace(0.9,1.0,3)"}, "sizes": {"n": 3}},
    "particles.gamma": {"grid": {"beta": "linspace(0.9,1.0,3)"}},
    "particles.rescaled": {"grid": {"V": "linspace(0.9,1.0,3)"}, "sizes": {"n": 2, "d": 2}},
    "particles.sphere": {"grid": {"beta": "linspace(0.9,1.0,3)"}, "sizes": {"n": 2, "d": 2}},
    "particles.two_clusters": {"grid": {"beta": "linspace(0.9,1.0,3)"}},
    "particles.unnormalised": {"grid": {"beta": "linspace(0.9,1.0,3)"}, "sizes": {"n": 2, "d": 2}},
    "reversal.bilinear": {"grid": {"eta": "linspace(0.9,1.0,3)"}, "sizes": {"M": 3, "d": 2, "N": 2}},
    "reversal.full": {"grid": {"eta_Y": "linspace(0.9,1.0,3)"}, "sizes": {"R": 3, "M": 4, "N": 2}},
    "reversal.row": {"grid": {"eta_Y": "linspace(0.9,1.0,3)"}},
    "scan_snap.decoder": {"grid": {"eta_Z": "linspace(0.9,1.0,3)"}},
    "scan_snap.full": {"grid": {"eta_Y": "linspace(0.9,1.0,3)"}, "sizes": {"K": 2, "S": 2}},
    "scan_snap.full_decorrelated": {"grid": {"eta_Y": "linspace(0.9,1.0,3)"}, "sizes": {"K": 2, "S": 4}},
    "scan_snap.reduced": {"grid": {"eta_Y": "linspace(0.9,1.0,3)"}, "sizes": {"K": 2, "S": 4}},
    "scan_snap.reduced_symmetric": {"grid": {"mc": "linspace(0.9,1.0,3)"}},
    "scan_snap.symmetric": {"grid": {"mc": "linspace(0.9,1.0,3)"}},
    "scan_snap.theorem4": {"grid": {"eta_Z": "linspace(0.9,1.0,3)"}},
    "topics.full": {"grid": {"P": "linspace(0.4,0.5,3)"}, "sizes": {"d": 2, "N": 2}},
    "topics.reduced": {"grid": {"p_c": "linspace(0.2,0.3,3)"}, "span": (0.0, 100.0)},
    "topics.stage1": {"grid": {"P": "linspace(0.4,0.5,3)"}, "sizes": {"d": 2, "N": 2}},
    "topics.tied": {"grid": {"P": "linspace(0.4,0.5,3)"}, "sizes": {"d": 2, "N": 2, "K": 3}},
}


def row_for(name: str) -> dict[str, Any]:
    """The row of a model that is not listed: sizes of at most three, and the first parameter that is a number or filled by one."""
    system = load_model(name)
    sizes = {size: min(n, 3) for size, n in bind(system).sizes.items()}
    numbers = bind(system, sizes=sizes)
    own = next(p.name for p in system.params if p.indexes is None and not p.integer and np.all(np.asarray(numbers.params[p.name]) > 0))
    value = float(np.ravel(numbers.params[own])[0])
    return {"grid": {own: [0.9 * value, 0.95 * value, value]}, "sizes": sizes}


class Rows(Mapping[str, dict[str, Any]]):
    """Every model: a new one needs no row. What is not listed is loaded where its row is read, not where tests are collected."""

    def __getitem__(self, name: str) -> dict[str, Any]:
        return LISTED[name] if name in LISTED else row_for(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*LISTED, *FLOWS)))

    def __len__(self) -> int:
        return len({*LISTED, *FLOWS})


MODELS = Rows()
IN_THREADS = [name for name in MODELS if name != "galore.projected"]
"""Those that a thread integrates: events that set states are refused there."""
METHODS: dict[str, list[float | None]] = {
    **{name: [None, 0.05] if method.adaptive else [0.05] for name, method in EXPLICIT.items()},
    **{name: [None] for name in ROSENBROCK},
}
"""The steps of each method, None for adaptive ones: a new one needs no row."""


def same_as_runs(found: "xarray.Dataset", model: Any, count: int, params: Any = (), initial: Any = (), **options: Any) -> None:
    """The first members of a strict ensemble have the bits, steps, status and events of strict runs. params, initial: what is a member's
    own, {name: (N, *shape)}."""
    names = found.attrs["status_names"]
    for i in range(count):
        own = {name: values[i] for name, values in dict(params).items()}, {name: values[i] for name, values in dict(initial).items()}
        one = odesim.integrate(model, params=own[0], initial=own[1], strict=True, **options)
        assert names[int(found.status[i])] == one.status
        assert (float(found.t_end[i]), int(found.steps[i]), int(found.rejected[i])) == (
            one.t_end,
            one.stats["steps"],
            one.stats["rejected"],
        )
        reached = found.time.values <= one.t_end
        at = np.searchsorted(one.t, found.time.values[reached])
        for name, values in one.y.items():
            np.testing.assert_array_equal(found[name].values[i, reached], values[at])
            assert np.isnan(found[name].values[i, ~reached]).all()
        for name in one.events if found.sizes.get("occurrence") else ():
            word = re.sub(r"\W", "_", name)
            events: Any = one.events[name]
            assert int(found[f"{word}_count"][i]) == len(events)
            np.testing.assert_array_equal(found[f"{word}_t"].values[i, : len(events)], events.t[: found.sizes["occurrence"]])


def asked(model: Any, **options: Any) -> tuple[Any, DeviceEngine]:
    """Members and engine of the backend cuda with the options of odesim.ensemble."""
    members, request = members_and_request(load_model(model), *ensemble_arguments(**{"method": "tsit5", "backend": "cuda", **options}))
    engine = make_engine(request, members)
    assert isinstance(engine, DeviceEngine)
    return members, engine


def thread_text(model: Any, method: str, **options: Any) -> str:
    """The CUDA text of an ensemble; where nothing is said to differ, the first parameter does."""
    if not any(options.get(name) for name in ("grid", "vary", "params", "initial")):
        options["grid"] = {load_model(model).params[0].name: "linspace(0.9,1.0,3)"}
    return source_of(asked(model, method=method, **options)[1].plan)
