"""What is stated of latent trees, by exact co-occurrence, and of what layers of attention and of nodes learn of latents."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.hierarchy.covariance import RHO
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
SAMPLED = (0.77202, 0.58711, 0.43779, 0.18263)
"""P[l | m] of 2e6 sequences of a tree with ten classes, N = 2, L = 4, rho = .9, one child of the root switched on: heights 1 to 4."""


def by_enumeration(L: int, rho: float, on: float, height: int, other: float | None = None) -> float:
    """P[l | m] by the table of an ancestor's two values and both paths down. on: P of a child of the root; other: of two at once."""
    step = np.array([[1 + rho, 1 - rho], [1 - rho, 1 + rho]]) / 2
    if other is not None:  # two children of the root, with probabilities of 00, 01, 10, 11
        table = np.array([[1 - 2 * on + other, on - other], [on - other, other]])
        both = np.linalg.matrix_power(step, L - 1).T @ table @ np.linalg.matrix_power(step, L - 1)
    else:
        ancestor = np.array([1 - on, on]) @ np.linalg.matrix_power(step, L - 1 - height)
        both = np.einsum("a,ab,ac->bc", ancestor, *[np.linalg.matrix_power(step, height)] * 2)
    return float(both[1, 1] / both[1].sum())


def heights() -> Iterable[Measurement]:
    """hierarchy.occurrence beside an enumeration and beside sampled sequences, at each height."""
    run = odesim.integrate("hierarchy.occurrence", save=[0, 1, 2, 3, 4], backend="numpy")
    for H, sampled in enumerate(SAMPLED, 1):
        found = float(run.observables["P"][H])
        exact = by_enumeration(4, 0.9, 0.1, H, 0.0 if H == 4 else None)
        yield Measurement(f"height {H}, by enumeration", found, exact, 1e-14)
        yield Measurement(f"height {H}, of 2e6 sequences", found, sampled, 1e-3)


def polarity(rho0: float) -> Iterable[Measurement]:
    """The formula below the root with this rho0, where a child of the root is 0 with probability .9."""
    for H, sampled in enumerate(SAMPLED[:3], 1):
        formula = 1 - (1 - 0.9 ** (2 * H)) / (2 * (1 - 0.9**3 * rho0))
        yield Measurement(f"formula at height {H}, of 2e6 sequences", formula, sampled, 1e-3)


def mean_root() -> Iterable[Measurement]:
    """The formula of all heights below the root, taken at the root."""
    shallow = 1 - (1 - 0.9**8) / (2 * (1 - 0.9**3 * 0.8))
    yield Measurement("formula at H = L = 4, of 2e6 sequences", shallow, SAMPLED[3], 1e-3)


def gated_numbers() -> Iterable[Measurement]:
    """Correlations of three layers at the start and at t = 400, and the weights there."""
    run = odesim.integrate("hierarchy.gated", span=(0, 400), save=[0, 400], **FINE)
    for s, (first, last) in enumerate(((0.9647, 0.9667), (0.9329, 0.9481), (0.8950, 0.9324)), 1):
        yield Measurement(f"r{s} at the start", run.observables[f"r{s}"][0], first, 6e-5)
        yield Measurement(f"r{s} at t = 400", run.observables[f"r{s}"][1], last, 6e-5)
    for name, row in (("v1", (2.2116, 1.5, 0.8578)), ("v2", (1.8454, 0.9805)), ("v3", (1.3483,))):
        for k, want in enumerate(row):
            yield Measurement(f"{name} of height {k + int(name[1])}", run.final[name][k], want, 6e-5)


def dip() -> Iterable[Measurement]:
    """The correlation of the first layer of a tree of depth 6: at the start, at t = 10 and at t = 60."""
    run = odesim.integrate("hierarchy.gated", sizes={"L": 6}, span=(0, 60), save=[0, 10, 60], **FINE)
    for k, want in enumerate((0.9384, 0.908, 0.9624)):
        yield Measurement(f"r1 at t = {run.t[k]:g}", run.observables["r1"][k], want, 6e-5 if k != 1 else 6e-4)


def leaf_by_leaf() -> Iterable[Measurement]:
    """Weights of the 15 leaves of a tree of depth 5 that stand beside the query, each by itself, and of their groups, to t = 50."""
    grouped = odesim.integrate("hierarchy.grouped", span=(0, 50), save=6, **FINE)
    count = 2 ** np.arange(4)
    mu = np.repeat(3 * grouped.observables["P"][0], count)
    leaves = odesim.integrate("joma.nonlinear_softmax", params={"mu": mu, "T": 2}, span=(0, 50), save=6, **FINE)
    yield deviation("v of a leaf less v of its group", leaves.y["v"], np.repeat(grouped.y["v"], count, axis=1), 1e-8)
    yield deviation("entropy of both", leaves.observables["entropy"], grouped.observables["entropy"], 1e-8)
    # attention sums to 1: so do the rates of -log of the gaps of all leaves
    gaps = np.log((mu - leaves.y["v"][0]) / (mu - leaves.y["v"])).sum(axis=1)
    yield deviation("time, and the sum of log(gap at the start / gap) over leaves", gaps, leaves.t, 1e-5)


DEPTHS = {  # by depth: P of the nearest and of the farthest height, when they are nine tenths there
    2: ((0.50, 0.50), (2.3, 2.3)),
    3: ((0.66, 0.35), (4.8, 11.2)),
    4: ((0.74, 0.29), (8.85, 28.85)),
    6: ((0.82, 0.24), (30.1, 112.0)),
    8: ((0.86, 0.24), (108.6, 380.8)),
}


def deep_and_shallow() -> Iterable[Measurement]:
    """Trees of depth 2 to 8, rho = rho0 = .95: the nearest tokens and the farthest."""
    delays = []
    for L, (ends, times) in DEPTHS.items():
        run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, span=(0, 450), **(FINE | {"rtol": 1e-8}))
        reached = {event["index"][0]: event["t"] for event in run.events["nine tenths"]}
        yield deviation(f"P of H = 1 and {L - 1}, L = {L}", run.observables["P"][0][[0, -1]], ends, 6e-3)
        yield deviation(f"time of H = 1 and {L - 1}, L = {L}", (reached[0], reached[L - 2]), times, 0.1)
        delays.append(reached[L - 2] / reached[0])
    yield Measurement("delay of the farthest, L = 8", delays[-1], 3.5, 0.05)
    yield Measurement("least growth of the delay from L = 2 to 6", np.diff(delays[:4]).min(), 0.0, 1e-6, ">=")


TREES = (
    Claim(
        "hierarchy.heights",
        Source(PAPER, "Theorem 5", "exact, with the root by its classes"),
        "hierarchy.occurrence, ten classes, N = 2, L = 4, rho = .9",
        "P[l | m] = 1 - (1 - rho^2H) / (2 (1 - rho^(L-1) rho0)) at every height, the root too",
        mean_root,
        "a standard error of 2e6 sequences is 7e-4",
        fails=True,
        corrected=Statement(
            "so below the root, with rho0 = 2 P[y = 0] - 1; at the root by its classes",
            heights,
            "rounding; three standard errors of 2e6 sequences are 1e-3 and more",
        ),
    ),
    Claim(
        "hierarchy.polarity",
        Source(PAPER, "Theorem 5", "its rho0, as recalled"),
        "the formula alone, N = 2, L = 4, rho = .9, beside sampled sequences",
        "rho0 is P[y = 0] of a child of the root",
        lambda: polarity(0.9),
        "three standard errors of 2e6 sequences",
        fails=True,
        corrected=Statement("rho0 is its mean polarity, 2 P[y = 0] - 1", lambda: polarity(0.8), "three standard errors of 2e6 sequences"),
        models=("hierarchy.occurrence",),
    ),
    Claim(
        "hierarchy.leaves",
        Source(PAPER, "Theorems 4 and 5 together", "tokens of one height are alike"),
        "hierarchy.grouped, N = 2, L = 5, beside joma.nonlinear_softmax for each leaf, to t = 50",
        "attention depends on the height of the common ancestor alone: L - 1 numbers are the whole tree",
        leaf_by_leaf,
        "100 times the relative tolerance 1e-10 of both runs",
    ),
    Claim(
        "hierarchy.depth",
        Source(PAPER, "Section 5", "deep and shallow trees, as on the slides of a talk; the times by an independent script"),
        "hierarchy.grouped, L = 2 ... 8, rho = rho0 = .95, kappa = 3",
        "with more latent layers near tokens are more often together, far ones less often, and these are learned later",
        deep_and_shallow,
        "digits of the table; times read off a grid of 0.1",
    ),
    Claim(
        "hierarchy.gates",
        Source(PAPER, "Section 5", "layers of a mean field"),
        "hierarchy.gated, N = 2, L = 4, rho = rho0 = .95, kappa = 3",
        "each layer tells its latents apart less well than the one below",
        gated_numbers,
        "half a unit of the last digit",
    ),
    Claim(
        "hierarchy.dip",
        Source(PAPER, "Section 5", "sparse attention, then spread"),
        "hierarchy.gated, L = 6",
        "the correlation of a layer with its latents falls while attention is sparse, then recovers",
        dip,
        "half a unit of the last digit",
    ),
)


# What layers of nodes learn of latents: moments in place of samples, relu, three layers, a label at the root.

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
