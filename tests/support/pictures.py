"""Stand-ins for solutions, of every kind that a picture has to show."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from odesim.plot.quantities import MAP
from odesim.run.solution import no_more_times

T = np.linspace(0.0, 20.0, 40)


LOG = np.append(0.0, np.geomspace(2e-3, 20.0, 39))


def grow(*shape: int, t: Any = T, rate: float = 0.1) -> Any:
    """(T, *shape): saturating curves of different heights, both signs."""
    heights = np.linspace(-0.5, 1.0, int(np.prod(shape))).reshape(shape)
    return (1 - np.exp(-rate * np.asarray(t))).reshape(-1, *[1] * len(shape)) * heights


def solution(y: Any, t: Any = T, **given: Any) -> Any:
    """A stand-in with the attributes of a Solution that a picture needs."""
    plain = {"observables": {}, "observable_floors": {}, "dims": {}, "events": {}, "status": "ok", "message": "", "model": "demo.model"}
    return SimpleNamespace(
        t=t,
        y=y,
        method="tsit5",
        t_end=float(t[-1]),
        dense=partial(no_more_times, "stored"),
        **{**plain, "attrs": {"time_unit": "SGD steps"}, **given},
    )


CASES = {
    "scalar": solution({"x": grow()}),
    "three scalars": solution({"x": grow(), "y": -grow(), "z": 3 * grow()}),
    "vector": solution({"v": grow(4)}, dims={"v": ("m",)}),
    "one component": solution({"v": grow(1)}, dims={"v": ("m",)}),
    "ten that end together": solution({"v": grow(10) * np.exp(-T)[:, None]}, dims={"v": ("m",)}),
    "vector and scalar": solution({"v": grow(4)}, observables={"entropy": grow()}, dims={"v": ("m",)}),
    "vector beside two": solution(
        {"v": grow(10)}, observables={"S": grow(), "gap": 1 - grow(10, rate=3)}, dims={"v": ("m",), "gap": ("m",)}
    ),
    "matrix": solution({"V": grow(2, 3)}, dims={"V": ("l", "k")}),
    "map": solution({"z": grow(40)}, observables={"loss": np.exp(-T)}, dims={"z": ("l",)}),
    "map of a matrix": solution({"V": grow(40, 20)}, observables={"rank": grow()}, dims={"V": ("l", "k")}),
    "constant map": solution({"z": np.ones((40, 30))}, dims={"z": ("l",)}),
    "matrices and vectors": solution(
        {"v": grow(3), "V": -grow(30, 3)},
        observables={"c": grow(2, 30), "S": grow(), "P": np.ones((40, 3))},
        dims={"v": ("m",), "V": ("l", "j"), "c": ("n", "l"), "P": ("m",)},
        events={
            "half_way": [{"t": 0.01 * i, "index": (i % 3,)} for i in range(1000)],
            "a rather long name of it": [{"t": 3.0, "index": None}],
        },
        attrs={"time_unit": "SGD steps", "watched": {"half_way": {"v": "component"}}},
    ),
    "bundle": solution({"z": grow(MAP + 1)}, observables={"loss": np.exp(-T)}, dims={"z": ("l",)}),
    "many states": solution(
        {**{name: grow(10) for name in "abdz"}, **{name: grow(3) for name in ("u", "v", "zc")}},
        observables={"loss": np.exp(-T), "c": grow(10), "cc": grow(3)},
        dims={**dict.fromkeys("abdzc", ("j",)), **dict.fromkeys(("u", "v", "zc", "cc"), ("g",))},
    ),
    "more than fit": solution({f"x{i}": grow() for i in range(14)}, observables={"loss": grow()}),
    "log times": solution({"v": grow(5, t=LOG)}, LOG, observables={"entropy": grow(t=LOG)}, dims={"v": ("m",)}),
    "a narrow panel": solution(
        {"v": grow(5, t=LOG)},
        LOG,
        observables={"entropy": 2.3 + 1e-4 * grow(t=LOG)},
        dims={"v": ("m",)},
        attrs={"time_unit": "time of gradient flow, SGD steps times eta"},
    ),
    "large times": solution({"v": grow(5)}, 1e5 * T, observables={"S": grow()}, dims={"v": ("m",)}),
    "large values": solution({"v": 1e8 * grow(5)}, observables={"S": 1e-9 * grow()}, dims={"v": ("m",)}),
    "almost constant": solution({"v": 1 + 1e-13 * grow(3)}, observables={"S": 7 + 1e-13 * grow()}, dims={"v": ("m",)}),
    "start and end": solution({"v": grow(3, t=T[[0, -1]])}, T[[0, -1]], dims={"v": ("m",)}),
    "start only": solution({"v": grow(3, t=T[:1])}, T[:1], observables={"z": grow(30, t=T[:1])}, dims={"v": ("m",), "z": ("l",)}),
    "not finite": solution(
        {"v": np.where(T[:, None] > 15, np.nan, grow(3))},
        observables={"S": np.full(40, np.nan), "A": np.where(T > 15, np.inf, grow())},
        dims={"v": ("m",)},
        status="blow_up",
    ),
    "events": solution(
        {"v": grow(3)},
        observables={"S": grow()},
        dims={"v": ("m",)},
        events={"half_way": [{"t": 4 * T[1], "index": (i,)} for i in range(3)], "snap": [{"t": 9.5, "index": None}], "never": []},
        attrs={"time_unit": "SGD steps", "watched": {"half_way": {"v": "component"}}},
    ),
    "long names": solution(
        {"relative_gain_of_the_most_frequent_token": grow(), "V": grow(3)},
        observables={"stable_rank_of_the_velocity": grow(), "S": grow()},
        model="/a/long/path/to/my_models/one_of_many_models_that_i_wrote.py:SECOND_SYSTEM",
    ),
    "a formula's signs": solution({"$x_1$": grow(), r"\frac{": -grow()}, observables={"$": grow()}, model="$m$"),
}
