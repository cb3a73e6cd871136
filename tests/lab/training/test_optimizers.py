"""The optimizers against hand-computed sequences and closed forms."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.training.optimizers import OPTIMIZERS, make_optimizer, settings_in_use
from odesim.lab.training.task import Optimizer

GROUPS = {"a": "left", "b": "right"}
SPEC = Optimizer("sgd", {"left": 0.1, "right": 0.25})


def start(seeds=2, dtype="float64"):
    rng = np.random.default_rng(0)
    return {"a": rng.normal(size=(seeds, 3)).astype(dtype), "b": rng.normal(size=(seeds, 2, 2)).astype(dtype)}


def gradients(params, i):
    """The gradient of a bowl, and a push that changes with the iteration."""
    return {name: w + np.asarray(np.sin(i + 1.0), w.dtype) for name, w in params.items()}


def run(spec, params, count, state=None, first=0):
    optimizer = make_optimizer(spec, GROUPS, params)
    if state:
        optimizer.load(state)
    for i in range(first, first + count):
        optimizer.update(params, gradients(params, i))
    return params, {name: a.copy() for name, a in optimizer.state().items()}


def turn(spec, t):
    """How far update t is along the cosine, from 0 to 1."""
    return min(t / spec.cosine, 1) if spec.cosine else 0


def by_singular_values(G):
    """What Muon makes of G: the polynomial of its singular values, five times; a vector has one."""
    U, s, V = np.linalg.svd(np.atleast_2d(G), full_matrices=False)
    s = s / (np.sqrt((s**2).sum()) + 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    high = G.shape[0] / G.shape[1] if G.ndim == 2 else 1
    return ((U * s) @ V * max(1, high) ** 0.5).reshape(G.shape)


def by_hand(spec, params, count):
    """The same as plain formulas of whole arrays, as torch's documentation has them."""
    v = {n: 0 * w for n, w in params.items()}
    m = {n: 0 * w for n, w in params.items()}
    b1, b2 = spec.betas
    for t in range(1, count + 1):
        g = gradients(params, t - 1)
        if spec.clip:
            norm = np.sqrt(sum((x.reshape(len(x), -1) ** 2).sum(axis=1) for x in g.values()))
            factor = np.where(norm > spec.clip, spec.clip / (norm + 1e-6), 1)
            g = {n: np.stack([row * f for row, f in zip(x, factor, strict=True)]) for n, x in g.items()}
        for n, w in params.items():
            rate, decay = spec.rates[GROUPS[n]] * (0.5 + 0.5 * np.cos(np.pi * turn(spec, t - 1))), spec.weight_decay
            if spec.name in ("adamw", "muon", "sign"):
                w = w - rate * decay * w
            else:
                g[n] = g[n] + decay * params[n]
            if spec.name == "muon":
                m[n] = spec.momentum * m[n] + (1 - spec.momentum) * g[n]
                ahead = (1 - spec.momentum) * g[n] + spec.momentum * m[n]
                params[n] = w - rate * np.stack([by_singular_values(G) for G in ahead])
                continue
            if spec.name == "sign":
                v[n] = spec.momentum * v[n] + (1 - spec.momentum) * g[n]
                params[n] = w - rate * np.sign(v[n])
                continue
            if spec.name in ("sgd", "momentum"):
                v[n] = spec.momentum * v[n] + g[n]
                params[n] = w - rate * v[n]
                continue
            m[n] = b1 * m[n] + (1 - b1) * g[n]
            v[n] = b2 * v[n] + (1 - b2) * g[n] ** 2
            params[n] = w - rate * (m[n] / (1 - b1**t)) / (np.sqrt(v[n] / (1 - b2**t)) + spec.eps)
    return params


SPECS = {
    "sgd": SPEC,
    "sgd decay": replace(SPEC, weight_decay=0.3),
    "sgd momentum": replace(SPEC, momentum=0.9),
    "momentum decay": replace(SPEC, name="momentum", momentum=0.5, weight_decay=0.3),
    "adam": replace(SPEC, name="adam"),
    "adam decay": replace(SPEC, name="adam", weight_decay=0.3, betas=(0.8, 0.95), eps=1e-3),
    "adamw": replace(SPEC, name="adamw", weight_decay=0.3),
    "sign": replace(SPEC, name="sign"),
    "sign momentum decay": replace(SPEC, name="sign", momentum=0.8, weight_decay=0.3),
    "muon": replace(SPEC, name="muon"),
    "muon momentum decay": replace(SPEC, name="muon", momentum=0.95, weight_decay=0.3, cosine=20),
    "sgd momentum cosine": replace(SPEC, momentum=0.9, cosine=9),
    "sgd clip": replace(SPEC, clip=2.5),
    "adamw clip": replace(SPEC, name="adamw", weight_decay=0.3, clip=0.1),
    "adamw cosine": replace(SPEC, name="adamw", weight_decay=0.3, cosine=20),
}


@pytest.mark.parametrize("name", SPECS)
def test_formulas(name):
    """Twelve steps are those of the formulas, but for rounding, which Muon makes 3.4445^5 times as large where G is nearly singular."""
    ours, _ = run(SPECS[name], start(), 12)
    theirs = by_hand(SPECS[name], start(), 12)
    for key in GROUPS:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-8 if "muon" in name else 1e-12, atol=1e-13)  # rounding of twelve steps


# one weight, start 1, gradients 1 then 1 then 2, rate 0.1: worked out with pen and paper
HAND = {
    "sign": (Optimizer("sign", {"g": 0.1}), [0.9, 0.8, 0.7]),
    "sign with decay": (Optimizer("sign", {"g": 0.1}, weight_decay=1.0), [0.8, 0.62, 0.458]),
    # one number is its own sign, which five times the polynomial make .696436
    "muon": (Optimizer("muon", {"g": 0.1}), [1 - 0.0696436, 1 - 0.1392872, 1 - 0.2089308]),
    "sgd": (Optimizer("sgd", {"g": 0.1}), [0.9, 0.8, 0.6]),
    "momentum": (Optimizer("sgd", {"g": 0.1}, momentum=0.5), [0.9, 0.75, 0.475]),
    # the whole rate, half of it, nothing
    "sgd with a cosine": (Optimizer("sgd", {"g": 0.1}, cosine=2), [0.9, 0.85, 0.85]),
    "sgd with decay": (Optimizer("sgd", {"g": 0.1}, weight_decay=1.0), [0.8, 0.62, 0.358]),
    # a constant gradient moves adam by its rate, whatever its size; with g = 2 after 1, 1: m = .3710, v = .005995
    "adam": (Optimizer("adam", {"g": 0.1}, eps=0.0), [0.9, 0.8, 0.8 - 0.1 * (0.371 / 0.271) / np.sqrt(0.005997001 / 0.002997001)]),
    "adamw": (Optimizer("adamw", {"g": 0.1}, eps=0.0, weight_decay=1.0), [0.8, 0.62]),
    "adam with decay": (Optimizer("adam", {"g": 0.1}, eps=0.0, weight_decay=1.0), [0.9]),
}


@pytest.mark.parametrize("name", HAND)
def test_by_hand(name):
    """The first steps of one weight are those worked out on paper."""
    spec, expected = HAND[name]
    params = {"w": np.ones((1, 1))}
    optimizer = make_optimizer(spec, {"w": "g"}, params)
    for gradient, value in zip((1.0, 1.0, 2.0), expected, strict=False):
        optimizer.update(params, {"w": np.full((1, 1), gradient)})
        assert params["w"].item() == pytest.approx(value, rel=1e-6 if name == "muon" else 1e-12)  # digits, rounding


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_state_is_all(name, dtype):
    """Five steps, the state handed over, seven steps: the bits of twelve; the dtype stays."""
    whole, _ = run(SPECS[name], start(dtype=dtype), 12)
    half, state = run(SPECS[name], start(dtype=dtype), 5)
    rest, _ = run(SPECS[name], half, 7, state, first=5)
    for key in GROUPS:
        assert rest[key].dtype == dtype
        np.testing.assert_array_equal(rest[key], whole[key])


@pytest.mark.parametrize("name", SPECS)
def test_seeds_together_are_seeds_alone(name):
    """Row r of R seeds has the bits of that seed alone; gradients are left as they are."""
    together, _ = run(SPECS[name], start(), 6)
    for r in range(2):
        alone, _ = run(SPECS[name], {key: w[r : r + 1] for key, w in start().items()}, 6)
        for key in GROUPS:
            np.testing.assert_array_equal(alone[key][0], together[key][r])
    params, kept = start(), gradients(start(), 0)
    make_optimizer(SPECS[name], GROUPS, params).update(params, kept)
    for key, g in gradients(start(), 0).items():
        np.testing.assert_array_equal(kept[key], g)


TEXT: Any = {"left": "x", "right": 1.0}
WRONG: dict[str, Any] = {
    "cosine": (replace(SPEC, cosine=-1), "a number of updates", "-1"),
    "part of a cosine": (replace(SPEC, cosine=1.5), "a number of updates", "1.5"),  # type: ignore[arg-type]
    "name": (replace(SPEC, name="adma"), "no optimizer 'adma'", "did you mean 'adam'?"),
    "group": (replace(SPEC, rates={"left": 1.0, "right": 1.0, "rigth": 1.0}), "no group of parameters 'rigth'", "did you mean 'right'?"),
    "no rate": (replace(SPEC, rates={"left": 1.0}), "no learning rate for the parameter 'b'"),
    "rate": (replace(SPEC, rates={"left": -1.0, "right": 1.0}), "learning rate of left", "-1"),
    "rate as text": (replace(SPEC, rates=TEXT), "learning rate of left must be a number, not 'x'"),
    "rate nan": (replace(SPEC, rates={"left": np.nan, "right": 1.0}), "learning rate of left", "nan"),
    "momentum": (replace(SPEC, momentum=-0.5), "momentum", "-0.5"),
    "no momentum": (replace(SPEC, name="momentum"), "momentum above 0"),
    "clip": (replace(SPEC, clip=-0.5), "clip", "-0.5"),
    "betas": (replace(SPEC, name="adam", betas=(0.9, 1.0)), "betas", "1.0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    """A wrong optimizer is one sentence with what is wrong."""
    spec, *pieces = WRONG[name]
    with pytest.raises(ParamError) as raised:
        make_optimizer(spec, GROUPS, start())
    assert all(piece in str(raised.value) for piece in pieces), raised.value


CHANGED: dict[str, Any] = {
    "rates": {"left": 0.11, "right": 0.25},
    "momentum": 0.95,
    "betas": (0.8, 0.99),
    "eps": 1e-3,
    "weight_decay": 0.05,
    "clip": 0.5,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("setting", CHANGED)
def test_what_is_used_changes_the_updates(name, setting):
    """A setting that an optimizer is said to use changes what six updates give; one that is not said changes no bit."""
    spec = replace(SPEC, name=name, momentum=0.3)
    ends = [run(one, start(), 6)[0]["a"] for one in (spec, replace(spec, **{setting: CHANGED[setting]}))]
    assert np.array_equal(*ends) is (setting not in settings_in_use(vars(spec)))


def test_state_of_another():
    """The state of adam does not load into sgd."""
    _, state = run(SPECS["adam"], start(), 1)
    with pytest.raises(ParamError, match="another optimizer"):
        make_optimizer(SPECS["sgd momentum"], GROUPS, start()).load(state)


def test_every_name_is_tested():
    """The tables above hold every optimizer."""
    assert {spec.name for spec in SPECS.values()} == set(OPTIMIZERS)
