"""What descent, other activations, losses and signals, and embeddings that overlap leave of Theorem 1 of the JoMA paper."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.lab.tasks.joma_gaussian import distributions
from odesim.models.joma import joint_exp, joint_linear
from odesim.models.joma._joint import joint
from odesim.models.joma._joint_claims import random_block
from odesim.symbolic import Source, System, descent

PAPER = "tian2023joma"
STEPS = (0.04, 0.02, 0.01)
LARGE = (0.2, 0.1, 0.05, 0.025)


def descended(step: float) -> tuple[np.ndarray, np.ndarray]:
    """(T, Mc) z - sum_k V^2/2 after each step of gradient descent to t = 20; (T - 1, Mc) -1/2 sum_k of the squared changes of V."""
    how: dict[str, Any] = {"method": "euler", "step": step, "span": (0, 20), "save": round(20 / step) + 1, "backend": "numpy"}
    run = odesim.integrate("joma.joint_exp", **random_block(), **how)
    V = run.y["V"]
    return run.y["Z"][..., 0] - (V**2).sum(axis=-1) / 2, -(np.diff(V, axis=0) ** 2).sum(axis=-1) / 2


def steps_keep() -> Iterable[Measurement]:
    """The drift over t = 20 by steps of .01."""
    law, _ = descended(STEPS[-1])
    yield Measurement(f"drift to t = 20, steps of {STEPS[-1]:g}", np.abs(law - law[0]).max(), 0.0, 1e-4)


def steps_drift() -> Iterable[Measurement]:
    """The change in each step beside its formula, and the whole drift for steps that are halved."""
    drifts = []
    for step in STEPS:
        law, formula = descended(step)
        yield deviation(f"change of z - sum_k V^2/2 less the formula, steps of {step:g}", np.diff(law, axis=0), formula, 1e-13)
        drifts.append(float(np.abs(law[-1] - law[0]).max()))
    for step, wide, narrow in zip(STEPS, drifts[:-1], drifts[1:], strict=False):
        yield Measurement(f"drift by steps of {step:g} / by half of it", wide / narrow, 2.0, 0.2)


def large_steps_drift() -> Iterable[Measurement]:
    """The whole drift to t = 20 over the sum of the formula, also by steps that are too large to follow the flow."""
    for step in LARGE:
        law, formula = descended(step)
        yield deviation(f"drift to t = 20 / formula, steps of {step:g}", (law[-1] - law[0]) / formula.sum(axis=0), 1.0, 1e-9)


def linear_steps_drift() -> Iterable[Measurement]:
    """The change in each step of z^2 - sum_k V^2 under linear attention, beside the squared changes of both."""
    how: dict[str, Any] = {"method": "euler", "step": 0.1, "span": (0, 20), "save": 201, "backend": "numpy"}
    run = odesim.integrate("joma.joint_linear", **random_block(), **how)
    V, z = run.y["V"], run.y["Z"][..., 0]
    formula = np.diff(z, axis=0) ** 2 - (np.diff(V, axis=0) ** 2).sum(axis=-1)
    yield deviation(
        "change of z^2 - sum_k V^2 less the formula, linear attention", np.diff(z**2 - (V**2).sum(axis=-1), axis=0), formula, 1e-13
    )


COSINES = (0.02, 0.06)
"""Of embeddings of Pythia and OPT models, as on the slides of a talk."""


def overlapping(cosine: float) -> tuple[float, float]:
    """Relative error of half the growth of sum_k V^2 beside that of z, and their correlation, at t = 40."""
    settings: dict[str, Any] = {
        "attention": "exp",
        "temperature": 1.0,
        "coordinates": "w",
        "cosine": cosine,
        "init_scale": 0.1,
        "eta": 0.02,
    }
    settings |= {"num_distinct": 3, "num_common": 2, "num_classes": 4, "d": 7}
    run = odesim.train("joma_gaussian", settings=settings, steps=2000, save=2).observables
    squares, z = (run["V"][0] ** 2).sum(axis=-1), run["z"][0, ..., 0]
    growth, moved = (squares[1] - squares[0]) / 2, z[1] - z[0]
    return float(np.linalg.norm(growth - moved) / np.linalg.norm(moved)), float(np.corrcoef(growth, moved)[0, 1])


def as_of_orthonormal() -> Iterable[Measurement]:
    """The law of orthonormal embeddings for those that overlap."""
    for cosine in COSINES:
        yield Measurement(f"relative error of z, cosines of {cosine:g}", overlapping(cosine)[0], 0.0, 0.003)


def direction() -> Iterable[Measurement]:
    """The law of orthonormal embeddings, its error for those that overlap, and the correlation that is left."""
    yield Measurement("relative error of z, orthonormal embeddings", overlapping(0.0)[0], 0.0, 0.003)
    error = {cosine: overlapping(cosine) for cosine in COSINES}
    first, last = (error[cosine][0] / cosine for cosine in COSINES)
    yield Measurement("relative error / cosine, cosines of .06 over those of .02", last / first, 1.0, 0.3)
    for cosine, (_, correlation) in error.items():
        yield Measurement(f"correlation with z, cosines of {cosine:g}", correlation, 0.979, 0.0, ">=")


STEPPED = (
    Claim(
        "joma.steps",
        Source(PAPER, "Theorem 1", "gradient descent in place of gradient flow"),
        "joma.joint_exp by Euler steps of .2 to .01 to t = 20, random data; joma.joint_linear by steps of .1",
        "gradient descent keeps z_l - 1/2 sum_k v_lk^2",
        steps_keep,
        "1e-4 of logits of order 1",
        fails=True,
        corrected=Statement(
            "a step h moves it by -(h^2/2) sum_k (dv_lk/dt)^2, under linear attention by both squared steps: it drifts in proportion to h",
            lambda: (*steps_drift(), *large_steps_drift(), *linear_steps_drift()),
            "rounding of logits of order 1, over a drift of 1e-4 and more; a tenth of the ratio for the next order in h",
        ),
        slow=True,
    ),
    Claim(
        "joma.overlaps",
        Source(PAPER, "Theorem 1", "embeddings that are not orthonormal; the bound on the correlation by an independent script"),
        "the task joma_gaussian, exp attention, W and Z trained, 2000 steps of .02, cosines of 0, .02, .06",
        "z_l - 1/2 sum_k v_lk^2 is constant for embeddings as they are, with cosines of .02 to .06",
        as_of_orthonormal,
        "finite steps: twice their error where embeddings are orthonormal",
        fails=True,
        corrected=Statement(
            "the error grows in proportion to the cosine, the direction of the logits stays",
            direction,
            "finite steps; .3 of the ratio for the next order in the cosine",
        ),
        models=("joma.joint_exp",),
    ),
)


START = {"exp": (joint_exp.THEOREM, 0.0), "linear": (joint_linear.THEOREM, 1.0)}
CASES = (("softplus", "fixed"), ("square", "mse"), ("identity", "mse"), ("relu", "ce"), ("relu", "mse"), ("relu", "fixed"))
END = {"ce": 10.0, "mse": 10.0, "fixed": 0.2}  # a signal that stays makes weights blow up


def block(attention: str, phi: str, signal: str) -> System:
    """The System of that block."""
    theorem, start = START[attention]
    return joint(attention, phi, theorem, start, signal)


def flows() -> Iterable[Measurement]:
    """How far Theorem 1 is off along flows from random data, eta_z = 3 eta_w; with relu until a node stays on its kink for a sample."""
    fine: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
    for attention in START:
        for phi, signal in CASES:
            given = random_block()
            given["params"] |= {"eta_z": 3.0, "T": 0.7}
            run = odesim.integrate(block(attention, phi, signal), span=(0, END[signal]), save=21, **given, **fine)
            squares, Z = (run.y["V"] ** 2).sum(axis=-1), run.y["Z"][..., 0]
            law = Z**2 - 3 * squares if attention == "linear" else Z - 3 / (2 * 0.7) * squares
            where = f"{attention} attention, phi = {phi}, loss {signal}, to t = {run.t_end:.3g}"
            yield deviation(f"drift, {where}", law, law[0], 1e-8)
            yield Measurement(f"largest change of z, {where}", np.abs(Z - Z[0]).max(), 0.02, 0.0, ">=")


SEED = 1  # with seed 0 all nodes of relu are inactive, and nothing moves
SMALL = {"num_distinct": 3, "num_common": 2, "num_classes": 4, "temperature": 0.7, "init_scale": 0.3}


def trainings() -> Iterable[Measurement]:
    """200 steps of the task joma_gaussian beside steps of descent on the System, and the law in one step."""
    for attention, phi, signal in (("exp", "relu", "ce"), ("linear", "relu", "mse"), ("exp", "identity", "mse"), ("exp", "relu", "fixed")):
        rates = {"eta_w": 0.5, "eta_z": 0.25}
        settings = {**SMALL, **rates, "attention": attention, "phi": phi, "signal": signal}
        run = odesim.train("joma_gaussian", settings=settings, seeds=(SEED,), steps=200, save=201, observe=("V", "Xi", "z"))
        seen = {name: run.observables[name][0] for name in ("V", "Xi", "z")}
        X = distributions(settings | {"data": "gaussian"}, (SEED,))[0]
        params: dict[str, Any] = {"X": X, "A": np.eye(4), "y": np.arange(4), "q": np.zeros(4, int), "T": 0.7, **rates}
        start = {"V": seen["V"][0], "Xi": seen["Xi"][0], "Z": seen["z"][0]}
        theory = odesim.integrate(
            descent(block(attention, phi, signal)), params=params, initial=start, steps=200, save=201, backend="numpy"
        )
        where = f"{attention} attention, phi = {phi}, loss {signal}"
        moved = min(float(np.ptp(seen[name], axis=0).max()) for name in ("V", "z"))
        yield Measurement(f"change of V and of z in 200 steps, {where}", moved, 0.02, 0.0, ">=")
        yield deviation(f"V of training less V of descent on the System, {where}", seen["V"], theory.y["V"], 1e-11)
        yield deviation(f"z of both, {where}", seen["z"], theory.y["Z"], 1e-11)
        V, z = seen["V"], seen["z"][..., 0]
        squares, own = (np.diff(V, axis=0) ** 2).sum(axis=-1), np.diff(z, axis=0)
        if attention == "exp":
            law, formula = z - 0.5 / (2 * 0.7) * (V**2).sum(axis=-1), -0.5 / (2 * 0.7) * squares
        else:
            law, formula = z**2 - 0.5 * (V**2).sum(axis=-1), own**2 - 0.5 * squares
        yield deviation(f"change of the law in a step less its formula, {where}", np.diff(law, axis=0), formula, 1e-12)


SIGNALS = (
    Claim(
        "joma.activations",
        Source(PAPER, "Theorem 1", "every activation, every signal that is sent back"),
        "joma.joint_exp and joma.joint_linear with relu, softplus, square; cross-entropy, squared loss, a signal that stays; random data",
        "attention follows the weights for every activation and every signal that is sent back",
        flows,
        "100 times the relative tolerance 1e-10 of the run, which ends steps at kinks of relu",
        slow=True,
    ),
    Claim(
        "joma.training",
        Source(PAPER, "Theorem 1", "training by steps, with relu and with a squared loss"),
        "the task joma_gaussian, 200 steps, beside descent on joma.joint_exp and joma.joint_linear with relu and other losses",
        "gradients by hand are the flow's; a step moves z - r/(2T) sum_k v_k^2 by -r/(2T) sum_k (step of v_k)^2, z^2 likewise",
        trainings,
        "rounding over 200 steps",
        slow=True,
    ),
)
