"""What layers of nodes learn of latents: moments in place of samples, relu, three layers, a label at the root."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.hierarchy.covariance import RHO
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
Weights = dict[str, np.ndarray]


def on_samples(start: Weights, x: np.ndarray, labels: np.ndarray, t: float) -> Weights:
    """V1 (K1, K0), V2 (K2, K1), U (C, K2) at time t of gradient flow on samples x (N, K0) with targets (N, C), by numpy and scipy.

    No System, so that it moves as it does whatever the equations of the models are: a change of them that is a function of the weights
    alone is one by which both flows would still agree.
    """
    from scipy.integrate import solve_ivp

    shapes = {name: weights.shape for name, weights in start.items()}
    ends = np.cumsum([weights.size for weights in start.values()])[:-1]

    def weights_of(y: np.ndarray) -> Weights:
        return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), np.split(y, ends), strict=True)}

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        V1, V2, U = weights_of(y).values()
        (M1, D1), (M2, D2) = ((V * np.exp(V**2 / 2), np.exp(V**2 / 2)) for V in (V1, V2))
        h1 = x @ M1.T
        off = (labels - h1 @ M2.T @ U.T) / len(x)
        return np.concatenate([part.ravel() for part in (D1 * ((off @ U @ M2).T @ x), D2 * ((off @ U).T @ h1), off.T @ h1 @ M2.T)])

    y0 = np.concatenate([weights.ravel() for weights in start.values()])
    return weights_of(solve_ivp(rate, (0, t), y0, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1])


def classes() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Centred tokens (6, 11), centred labels (6, 6), latents of both layers (6, n) of a hierarchy of six classes."""
    from odesim.lab.tasks.hierarchy_dag import draw_dag

    dag = draw_dag(0, {"n0": 5, "n1": 6, "num_classes": 6}, 2, 12)
    tokens, labels = dag.present[:, :-1].astype(float), np.eye(6)
    return tokens - tokens.mean(axis=0), labels - 1 / 6, tuple(np.asarray(a, float) for a in dag.active[:2])


def rows(final: Weights) -> list[np.ndarray]:
    """What the nodes of both layers add up of the tokens: M1 (K1, K0), M2 M1 (K2, K0)."""
    M1, M2 = (final[name] * np.exp(final[name] ** 2 / 2) for name in ("V1", "V2"))
    return [M1, M2 @ M1]


def moments() -> Iterable[Measurement]:
    """hierarchy.covariance beside the flow on samples, to t = 5; correlations of nodes and latents by moments, and of samples."""
    x, labels, latents = classes()
    params = {"Sig_xx": x.T @ x / 6, "Sig_cx": labels.T @ x / 6}
    sizes = {"K1": 4, "K2": 3}
    by_moments = odesim.integrate("hierarchy.covariance", params=params, sizes=sizes, span=(0, 5), **FINE)
    by_samples = on_samples({name: by_moments.y[name][0] for name in ("V1", "V2", "U")}, x, labels, 5.0)
    for name, weights in by_samples.items():
        yield deviation(f"{name} of both at t = 5", by_moments.final[name], weights, 1e-8)
    for s, (P, latent) in enumerate(zip(rows(by_moments.final), latents, strict=True)):
        seen = latent[:, np.ptp(latent, axis=0) > 0]
        latent_x = x.T @ (seen - seen.mean(axis=0)) / 6
        formula = P @ latent_x / np.sqrt(np.einsum("ki,ij,kj->k", P, params["Sig_xx"], P)[:, None] * seen.var(axis=0))
        sampled = np.corrcoef((x @ rows(by_samples)[s].T).T, seen.T)[: len(P), len(P) :]
        yield deviation(f"correlations of nodes and latents, s = {s}", formula, sampled, 1e-7)


def tree() -> tuple[np.ndarray, np.ndarray]:
    """Covariances of eight leaves with the four latents above two leaves each, and with the two children of the root above four."""
    leaf = np.arange(8)
    height = np.where(leaf[:, None] // 2 == np.arange(4), 1, 3)
    side = leaf[:, None] // 4
    middle = np.where(side == np.arange(4) // 2, RHO**height, -(RHO**3))
    return middle, np.where(side == np.arange(2), RHO**2, -(RHO**2))


STARTS = (0.01, 0.0025)
"""Deviations of the start; weights that are not taught keep it, beside taught ones of order 1."""


def split(depth_counts: bool) -> Iterable[Measurement]:
    """Correlations of the nodes of hierarchy.covariance, on its default tree, with latents; from small starts."""
    for scale in STARTS:
        rng = np.random.default_rng(0)
        start = {name: scale * rng.standard_normal(shape) for name, shape in (("V1", (3, 8)), ("V2", (2, 3)), ("U", (2, 2)))}
        run = odesim.integrate("hierarchy.covariance", initial=start, span=(0, 1500), **FINE)
        xx, loss = run.attrs["params"]["Sig_xx"], run.observables["loss"]
        yield Measurement(f"fall of the loss, start {scale:g}", loss[0] - loss[-1], 0.1, 0.0, ">=")
        for s, P in enumerate(rows(run.final)):
            length = np.sqrt(np.einsum("ki,ij,kj->k", P, xx, P))[:, None]
            middle, children = (np.abs(P @ part / length).max(axis=0) for part in tree())
            where = f"layer {s + 1}, start {scale:g}: best correlation with"
            if depth_counts:
                yield deviation(f"{where} a latent above two leaves", middle, 1.0, scale)
            else:
                want = (1 / RHO + 3 * RHO) / 4
                yield deviation(f"{where} a middle latent / with a child", middle / children[[0, 0, 1, 1]], want, scale)


DEEP = tuple(((("V", (nodes, inputs)), ("xi", (nodes,))), nodes) for inputs, nodes in ((5, 3), (3, 2), (2, 3)))
"""What a layer has, and its nodes."""


def homogeneous() -> Iterable[Measurement]:
    """Squares of the weights that leave and enter nodes of relu, to t = 5 or until a node stays on its kink for a sample."""
    for variant, shapes in (("RELU", DEEP[:2]), ("THREE", DEEP)):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            start = {f"{name}{s}": 0.3 + 0.4 * rng.standard_normal(shape) for s, (both, _) in enumerate(shapes, 1) for name, shape in both}
            start["U"] = 0.4 * rng.standard_normal((4, shapes[-1][-1]))
            run = odesim.integrate(f"hierarchy.multilayer:{variant}", initial=start, span=(0, 5), save=2, **FINE)
            where = f"{len(shapes)} layers, start {seed}, to t = {run.t_end:.3g}"
            laws = [off for name, off in run.invariants.items() if name.startswith("balance")]
            yield Measurement(f"balance of each layer, {where}", np.nan if None in laws else max(off or 0.0 for off in laws), 0.0, 1e-7)
            yield Measurement(f"fall of the loss, {where}", run.observables["loss"][0] - run.observables["loss"][-1], 0.002, 0.0, ">=")


SMALL: dict[str, Any] = {"K1": 12, "K2": 10, "num_classes": 6, "n0": 5, "n1": 6, "vocabulary": 12, "phi": "relu", "init_scale": 0.5}


def followed() -> Iterable[Measurement]:
    """How far V1 and V2 of trainings are from the flow, to t = 1 or until a node stays on its kink, by 50 steps and by 100."""
    from odesim.lab.tasks.hierarchy_dag import draw_dag

    names = ("V1", "V2", "U", "xi1", "xi2")
    begun = odesim.train("hierarchy_layers", settings=SMALL, steps=1, save=2, observe=names).observables
    X = draw_dag(0, {name: SMALL[name] for name in ("n0", "n1", "num_classes")}, 2, 12).present[:, :-1].astype(float)
    params, start = {"X": X, "pi": np.full(6, 1 / 6), "y": np.arange(6)}, {name: begun[name][0, 0] for name in names}
    flow = odesim.integrate("hierarchy.multilayer:RELU", params=params, initial=start, span=(0, 1), save=2, **FINE)
    apart = []
    for steps in (50, 100):
        settings = {**SMALL, "eta": flow.t_end / steps}
        found = odesim.train("hierarchy_layers", settings=settings, steps=steps, save=2, observe=names).observables
        apart.append([float(np.abs(found[name][0, -1] - flow.final[name]).max()) for name in ("V1", "V2")])
    moved = [float(np.abs(flow.final[name] - start[name]).max()) for name in ("V1", "V2")]
    for name, wide, narrow, whole in zip(("V1", "V2"), *apart, moved, strict=True):
        where = f"to t = {flow.t_end:.3g}"
        yield Measurement(f"distance of {name} from the flow, 50 steps / 100, {where}", wide / narrow, 2.0, 0.5)
        yield Measurement(f"distance of {name} from the flow by 100 steps / what it moves, {where}", narrow / whole, 0.01, 0.0, "<=")


LAYERS = (
    Claim(
        "hierarchy.moments",
        Source(PAPER, "Section 5", "linear nodes, a squared loss; ours"),
        "hierarchy.covariance of six classes of shared latents, beside the flow on their samples by plain numpy, to t = 5",
        "covariances of tokens, labels and latents are all that weights and their correlations with latents depend on",
        moments,
        "100 times the relative tolerance 1e-10 of both runs",
        slow=True,
    ),
    Claim(
        "hierarchy.root_label",
        Source(PAPER, "Section 5", "linear nodes and labels of the root; ours"),
        "hierarchy.covariance at its defaults, a tree of eight leaves, from normal weights of .01 and .0025 to t = 1500",
        "nodes of the first layer find the latents above their tokens",
        lambda: split(True),
        "the size of the start, which weights that are not taught keep",
        fails=True,
        corrected=Statement(
            "labels of the root teach its children alone: all latents below have (1/rho + 3 rho)/4 of their correlation",
            lambda: split(False),
            "the size of the start, which weights that are not taught keep",
        ),
        slow=True,
    ),
    Claim(
        "hierarchy.relu",
        Source(PAPER, "Section 5", "the law of hierarchy.balance with relu, in two and three layers; ours"),
        "hierarchy.multilayer:RELU and THREE, to t = 5; the task hierarchy_layers with relu beside RELU",
        "with relu the balance of weights is constant in two and in three layers, and training by small steps follows the flow",
        lambda: (*homogeneous(), *followed()),
        "1000 times the tolerance 1e-10 of runs that end steps at kinks; of trainings the next order and kinks, and one step's share",
        slow=True,
    ),
)
