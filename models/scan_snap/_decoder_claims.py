"""What the Scan & Snap paper states of gradients and of the decoder: Lemmas 1 to 6."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import E, LambertW, Symbol

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, deviation
from odesim.models.scan_snap.decoder import SYSTEM as ALONE
from odesim.models.scan_snap.full import SYSTEM as FULL
from odesim.models.scan_snap.full import K, S, Y, Z, copies, eta_Y, eta_Z, j, l, m
from odesim.symbolic import Source, System, descent, gradient_flow

PAPER = "tian2023scan"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "method": "vern7"}
M = 1e4  # of scan_snap.decoder at its defaults


def differentiated() -> System:
    """scan_snap.full by differentiation of its loss; a column of Y that stands for several has its share of the slope."""
    flow = gradient_flow(FULL.observables["loss"], {Y[l, j]: eta_Y / copies, Z[m, l]: eta_Z})
    return replace(FULL, name="scan_snap.descent", equations=flow, sizes={K: 3, S: 7})


def by_lemma(y: dict[str, Any], q: dict[str, Any]) -> dict[str, np.ndarray]:
    """Y' = sum p f e^T and Z' = sum p diag(f)(I - f f^T) Y e, by a loop over classes."""
    f = q["P"] * np.exp(y["Z"][q["psi"].astype(int)])
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    multiplicity = np.append(np.ones(len(f)), q["M"] - len(f))
    dY, dZ = np.zeros_like(y["Y"]), np.zeros_like(y["Z"])
    for row, weight, query, target in zip(f, q["p"], q["psi"], np.eye(len(f), len(f) + 1), strict=True):
        odds = np.exp(row @ y["Y"])
        e = target - odds / (odds @ multiplicity)
        g = y["Y"] @ (multiplicity * e)
        dY += weight * np.outer(row, e)
        dZ[int(query)] += weight * row * (g - row * (row @ g))
    return {"Y": dY, "Z": dZ}


def gradients() -> Iterable[Measurement]:
    """One step of length 1 down the loss from a random state, three classes, two with one query; the lemma's sums beside it."""
    rng = np.random.default_rng(0)
    start = {"Y": rng.normal(size=(7, 4)), "Z": rng.normal(size=(2, 7))}
    params: dict[str, Any] = {"psi": [0, 1, 0], "p": [0.2, 0.3, 0.5], "M": 9.5}
    run = odesim.integrate(differentiated(), params=params, initial=start, span=(0, 1), method="euler", step=1.0, backend="numpy")
    for name, want in by_lemma(start, run.attrs["params"]).items():
        yield deviation(f"slope of {name}", run.y[name][-1] - run.y[name][0], want, 1e-12)


def margin() -> Iterable[Measurement]:
    """The implicit solution, and Gamma of u, along a run."""
    for rate, classes in ((1.0, 1.0), (4.0, 10.0)):
        save = [0.0, 1.0, 5.0, 10.0, 50.0]
        run = odesim.integrate("scan_snap.decoder", params={"eta_Y": rate, "K": classes}, save=save, **FINE)
        u, where = run.y["u"], f"eta_Y = {rate:g}, K = {classes:g}"
        yield deviation(f"relative residual, {where}", np.exp(u) + (M - 1) * u, M * rate * run.t / classes + 1, 1e-8, relative=True)
        path = classes / (2 * rate) * ((M - 1) / M * u) ** 2
        yield deviation(f"int gamma dt - K/(2 eta_Y) ((M-1)/M)^2 u^2, {where}", run.y["Gamma"], path, 1e-7)


CLASSES: dict[str, Any] = {"P": [[0.35, 0.25, 0.4, 0], [0.01, 0.45, 0, 0.54]], "M": 200.0, "eta_Z": 0.0}


def predicted(name: str) -> Iterable[Measurement]:
    """- ln alpha of two classes with overlap .37, attention at rest, against the margin of the decoder."""
    save = [0.0, 5.0, 10.0, 20.0, 30.0]
    run = odesim.integrate(f"scan_snap.{name}", params=CLASSES, save=save, backend="numpy", **FINE)
    alone = odesim.integrate("scan_snap.decoder", params={"K": 2.0, "M": 200.0}, save=save, **FINE)
    yield deviation(f"loss - ln(1 + (M-1) exp(-u)), scan_snap.{name}", run.observables["loss"], alone.observables["loss"], 1e-9)


STEPS = {  # h at the end and the largest (h* - h) / (2 eta_Y / M), by vocabulary and number of steps
    (50.0, 80): {0.1: (0.100758, 0.093), 0.2: (0.124164, 0.093), 0.5: (0.148029, 0.095), 1.0: (0.163772, 0.098), 2.0: (0.178621, 0.106)},
    (1000.0, 70): {0.2: (0.0085966, 0.093), 1.0: (0.0109857, 0.098), 4.0: (0.0124969, 0.105), 20.0: (0.0141418, 0.268)},
}


def steps() -> Iterable[Measurement]:
    """h* of descent by steps of one, above h of the flow."""
    discrete = descent(ALONE, step=1.0)
    for (size, count), rows in STEPS.items():
        for rate, (end, gap) in rows.items():
            params, save = {"M": size, "eta_Y": rate}, np.arange(count + 1)
            h_star = odesim.integrate(discrete, params=params, steps=count, save=save).y["u"] / size
            h = odesim.integrate("scan_snap.decoder", params=params, save=save.astype(float), span=(0, count), **FINE).observables["h"]
            share = (h_star - h) / (2 * rate / size)
            where = f"M = {size:g}, eta_Y = {rate:g}"
            yield Measurement(f"h at the end, {where}", h[-1], end, 6e-7 if size == 50 else 6e-8)
            yield Measurement(f"least (h* - h) / (2 eta_Y/M), {where}", share.min(), 0.0, 1e-8, ">=")
            yield Measurement(f"largest (h* - h) / (2 eta_Y/M), {where}", share.max(), 1.0, 1e-8, "<=")
            yield Measurement(f"the same beside an independent program, {where}", share.max(), gap, 6e-4)


def largest_gamma() -> Iterable[Measurement]:
    """gamma at its event."""
    from scipy.special import lambertw

    run = odesim.integrate("scan_snap.decoder", save=np.linspace(7, 8, 1001), **FINE)
    W = lambertw((M - 1) / np.e).real
    yield Measurement("gamma_max", run.observables["gamma"].max(), (M - 1) / M * W, 1e-6)
    yield Measurement("its time", run.events["gamma peaks"][0]["t"], (np.expm1(1 + W) + (M - 1) * (1 + W)) / M, 1e-6)


DECODER = (
    Claim(
        "scan_snap.gradients",
        Source(PAPER, "Lemmas 1 and 2"),
        "gradient flow of the loss of scan_snap.full, by differentiation, from a random state",
        "Y' = f e^T and z' = diag(f)(I - f f^T) Y e for a sequence: the mean over classes is the gradient",
        gradients,
        "rounding of sums of some 30 terms of order 1",
    ),
    Claim(
        "scan_snap.decoder_alone",
        Source(PAPER, "Lemma 3"),
        "scan_snap.full_decorrelated with attention at rest, two classes with an overlap",
        "the classes learn apart: alpha_nn = exp(M h) / (M - 1 + exp(M h))",
        lambda: predicted("full_decorrelated"),
        "10 times the relative tolerance 1e-10 of both runs",
        when="the decoder gradient is decorrelated",
        otherwise=lambda: predicted("full"),
        models=("scan_snap.full_decorrelated", "scan_snap.full", "scan_snap.decoder"),
    ),
    Claim(
        "scan_snap.decoder_solution",
        Source(PAPER, "Lemmas 5 and 6"),
        "scan_snap.decoder to t = 50, M = 10000",
        "u = M h obeys exp(u) + (M - 1) u = M eta_Y t/K + 1, and int gamma dt = K (M - 1)^2 h^2 / (2 eta_Y)",
        margin,
        "100 times the relative tolerance 1e-10 of the run; Gamma is of order 100",
        depends=("scan_snap.decoder_alone",),
    ),
    Claim(
        "scan_snap.decoder_steps",
        Source(PAPER, "Lemma 5 and Fig. 8", "the largest gaps by an independent program"),
        "descent on scan_snap.decoder by steps of 1, M = 50 and 1000, eta_Y = .1 ... 20",
        "0 <= h* - h <= 2 eta_Y / M at every step",
        steps,
        "of the bounds the error of the runs; digits as recorded",
        depends=("scan_snap.decoder_solution",),
    ),
    Claim(
        "scan_snap.gamma_max",
        Source(PAPER, "Lemma 6"),
        "scan_snap.decoder, M = 10000",
        "gamma is largest, ((M-1)/M) W((M-1)/e), where u = 1 + W((M-1)/e)",
        largest_gamma,
        "a grid of 1e-3 in t, on which the maximum is flat to 1e-6",
        marks=(Mark("gamma", (1 - 1 / Symbol("M")) * LambertW((Symbol("M") - 1) / E)),),
        depends=("scan_snap.decoder_solution",),
    ),
)
