"""What the JoMA paper states for every activation and every loss: relu, a squared loss, a signal that stays; flow and training."""

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
            yield Measurement(f"largest change of z, {where}", float(np.abs(Z - Z[0]).max()), 0.02, 0.0, ">=")


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
        printed=Statement(
            "attention follows the weights for every activation and every signal that is sent back",
            flows,
            "100 times the relative tolerance 1e-10 of the run, which ends steps at kinks of relu",
        ),
        slow=True,
    ),
    Claim(
        "joma.training",
        Source(PAPER, "Theorem 1", "training by steps, with relu and with a squared loss"),
        "the task joma_gaussian, 200 steps, beside descent on joma.joint_exp and joma.joint_linear with relu and other losses",
        printed=Statement(
            "gradients by hand are the flow's; a step moves z - r/(2T) sum_k v_k^2 by -r/(2T) sum_k (step of v_k)^2, z^2 likewise",
            trainings,
            "rounding over 200 steps",
        ),
        slow=True,
    ),
)
