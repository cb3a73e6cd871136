"""What the GaLore paper states of projections: on both sides, with Adam, fixed, and looked up again; of memory and ranks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.galore.parametric_gradient import SYSTEM as PLAIN
from odesim.models.galore.parametric_gradient import G, N, W, gradient, i, j, k, l, m, n, s, stable_rank
from odesim.models.joma.linear_multinode import SYSTEM
from odesim.symbolic import IndexedBase, Param, Source, System, at, index, over, sizes

# Memory of training with Adam, GaLore and LoRA, in elements: weights, moments and projections, without gradients.


def adam(m: int, n: int) -> int:
    """A weight (m, n) and its two moments."""
    return 3 * m * n


def galore(m: int, n: int, r: int) -> int:
    """A weight (m, n), one projection of its shorter side to r, two moments of what is projected."""
    short, long = sorted((m, n))
    return m * n + short * r + 2 * long * r


def lora(m: int, n: int, r: int) -> int:
    """A weight (m, n), factors (m, r) and (r, n), and their moments."""
    return m * n + 3 * (m + n) * r


def break_even(m: int, n: int) -> float:
    """The rank below which GaLore takes less than Adam: 2 m n / (m + 2 n), with m the shorter side."""
    short, long = sorted((m, n))
    return 2 * short * long / (short + 2 * long)


@dataclass(frozen=True)
class Llama:
    """Sizes of a LLaMA; embedding and head are not tied."""

    hidden: int
    intermediate: int
    heads: int
    layers: int
    vocabulary: int = 32_000

    @property
    def embeddings(self) -> int:
        """Elements of embedding and head."""
        return 2 * self.vocabulary * self.hidden

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes of the matrices of all layers: q, k, v, o, then gate, up, down."""
        return self.layers * (4 * [(self.hidden, self.hidden)] + 3 * [(self.hidden, self.intermediate)])

    @property
    def norms(self) -> int:
        """Elements of the norms: two in each layer, one at the end."""
        return (2 * self.layers + 1) * self.hidden

    @property
    def parameters(self) -> int:
        """Elements of all weights."""
        return self.embeddings + self.norms + sum(m * n for m, n in self.matrices)

    def adam(self) -> int:
        """Elements with Adam."""
        return 3 * self.parameters

    def galore(self, r: int) -> int:
        """Elements with GaLore on the matrices of the layers, Adam on the rest."""
        return 3 * (self.embeddings + self.norms) + sum(galore(m, n, r) for m, n in self.matrices)

    def bytes(self, method: str, r: int = 0, *, gradients: bool = True) -> int:
        """Bytes of training with weights of 16 bits, without activations.

        method: "adam" (moments of 16 bits), "adam8" (of 8 bits), "galore" and "galore8" with rank r: projections of 16 bits, Adam of as
        many bits as theirs on embeddings, head and norms. gradients: all, or the largest matrix's alone, applied layer by layer.
        """
        of_moment, P = 1 if method.endswith("8") else 2, self.parameters
        matrix = max(self.vocabulary * self.hidden, *(m * n for m, n in self.matrices))
        kept = 2 * P + 2 * (P if gradients else matrix)
        if method.startswith("adam"):
            return kept + 2 * of_moment * P
        low = sum(2 * of_moment * max(shape) * r + 2 * min(shape) * r for shape in self.matrices)
        return kept + 2 * of_moment * (self.embeddings + self.norms) + low


# What the GaLore paper states of memory, from the sizes of the models, and of the rank of gradients beside that of weights.

PAPER = "zhao2024galore"
BYTES, GIB = 2, 2**30
SIZES = {
    "60M": Llama(512, 1376, 8, 8),
    "130M": Llama(768, 2048, 12, 12),
    "350M": Llama(1024, 2736, 16, 24),
    "1B": Llama(2048, 5461, 32, 24),
}
RANK = {"60M": 128, "130M": 256, "350M": 256, "1B": 512}
TABLE = {  # millions of parameters; GB with Adam, with GaLore
    "60M": (58.1, 0.348, 0.280),
    "130M": (134.1, 0.805, 0.611),
    "350M": (368.0, 2.208, 1.389),
    "1B": (1339.1, 8.034, 4.763),
}
PRINTED = {"60M": (0.36, 0.24), "130M": (0.76, 0.52), "350M": (2.06, 1.22), "1B": (7.80, 4.38)}


def table() -> Iterable[Measurement]:
    """Memory of four models: by the formulas, and beside the printed numbers."""
    for name, model in SIZES.items():
        both = [BYTES * elements for elements in (model.adam(), model.galore(RANK[name]))]
        yield deviation(f"parameters of {name} / 1e6", model.parameters / 1e6, TABLE[name][0], 0.051)
        yield deviation(f"GB of {name}, Adam and GaLore", [x / 1e9 for x in both], TABLE[name][1:], 5.1e-4)
        yield deviation(f"GiB of {name} / printed", [x / GIB for x in both], PRINTED[name], 0.1, relative=True)


def rank(m: int, n: int, r: int) -> Iterable[Measurement]:
    """Elements of GaLore over those of Adam and of LoRA."""
    yield Measurement(f"GaLore / Adam, {m} x {n}, r = {r}", galore(m, n, r) / adam(m, n), 1.0, 1e-12, "<=")
    yield Measurement(f"GaLore / LoRA, {m} x {n}, r = {r}", galore(m, n, r) / lora(m, n, r), 1.0, 1e-12, "<=")


def billion(heads: int, layers: int) -> Iterable[Measurement]:
    """What is left of the hidden size in heads, and the parameters."""
    model = Llama(2048, 5461, heads, layers)
    yield Measurement("hidden size modulo heads", model.hidden % model.heads, 0.0)
    yield Measurement("parameters / 1e6", model.parameters / 1e6, 1339.1, 0.051)


def other_depth() -> Iterable[Measurement]:
    """The parameters with as many layers as the row has heads."""
    yield Measurement("parameters with 32 layers / 1e9", Llama(2048, 5461, 32, 32).parameters / 1e9, 1.74, 5.1e-3)


LIMIT = int(break_even(2048, 5461))

MEMORY = (
    Claim(
        "galore.memory",
        Source(
            PAPER,
            "memory of pre-training LLaMA",
            "vocabulary 32000, embeddings and norms by Adam, 2 bytes each; their accounting is not stated",
        ),
        "formulas alone: weights, moments and projections of LLaMA of 60M to 1B parameters",
        "memory with Adam and with GaLore, .36 and .24 GB for 60M to 7.80 and 4.38 GB for 1B",
        table,
        "half a unit of the last digit of an independent script; 10 % of the printed numbers, read as GiB",
        models=("galore.parametric_gradient",),
    ),
    Claim(
        "galore.memory_rank",
        Source(PAPER, "table of memory", "one weight of 2048 x 5461"),
        "formulas alone",
        "GaLore takes mn + mr + 2nr elements, less than Adam and LoRA",
        lambda: rank(2048, 5461, LIMIT),
        "rounding of a quotient",
        when="r < 2mn / (m + 2n), here 1724",
        otherwise=lambda: rank(2048, 5461, LIMIT + 1),
        models=("galore.parametric_gradient",),
    ),
    Claim(
        "galore.sizes",
        Source(PAPER, "sizes of LLaMA 1B", "the row as on the slides of a talk"),
        "formulas alone: hidden 2048, intermediate 5461, vocabulary 32000",
        "LLaMA 1B has 24 heads and 32 layers",
        lambda: billion(24, 32),
        "none: whole numbers; a printed digit",
        fails=True,
        corrected=Statement(
            "it has 32 heads and 24 layers: 1339.1 million parameters; 32 layers make 1.74 billion",
            lambda: (*billion(32, 24), *other_depth()),
            "half a unit of the printed digit",
        ),
        models=("galore.parametric_gradient",),
    ),
)


TAILS = {  # by 1 - t/t*: stable rank of V less 1, its formula; of dV/dt less 1, its formula
    1e-3: (3.0891, 4.3697, 2.3276e-3, 2.3290e-3),
    1e-6: (1.6980, 1.9845, 4.8387e-9, 4.8387e-9),
    1e-9: (1.1518, 1.2723, 7.1e-15, 7.4e-15),
    1e-15: (0.6959, 0.7370, 0.0, 1e-26),
}
DIGITS = {
    1e-3: (5.1e-5, 5.1e-5, 5.1e-8, 5.1e-8),
    1e-6: (5.1e-5, 5.1e-5, 7e-14, 5.1e-14),
    1e-9: (5.1e-5, 5.1e-5, 2e-14, 5.1e-17),
    1e-15: (5.1e-5, 5.1e-5, 2e-14, 5.1e-27),
}


def tails() -> Iterable[Measurement]:
    """Both stable ranks before the blow-up, by the closed form, and sums over the rows that do not win."""
    from scipy.special import erfcinv

    Delta = np.random.default_rng(0).standard_normal((40, 20))
    length = np.linalg.norm(Delta, axis=1)
    top = int(length.argmax())
    share, sine = length / length[top], 1 - (Delta @ Delta[top] / (length * length[top])) ** 2
    sine[top] = 0.0  # which leaves no rounding
    for x, row in TAILS.items():
        s = np.sqrt(2) * erfcinv((1 - share) + share * x)  # erfinv(share (1 - x)) without the rounding of 1 - x
        rate = length * np.exp((s**2 - s[top] ** 2) / 2)
        for name, rows, want, digits in (("V", s, row[:2], DIGITS[x][:2]), ("dV/dt", rate, row[2:], DIGITS[x][2:])):
            seen = stable_rank(Delta / length[:, None] * rows[:, None]) - 1
            yield Measurement(f"stable rank of {name} - 1 at 1 - t/t* = {x:g}", seen, want[0], digits[0])
            yield Measurement(f"its formula, {name}, 1 - t/t* = {x:g}", (rows / rows[top]) ** 2 @ sine, want[1], digits[1])


def at_the_blow_up(second: float) -> Iterable[Measurement]:
    """The stable rank of dV/dt at 1 - t/t* = 1e-4, three rows of length 1, second and .6."""
    Delta = np.array([[1.0, 0.0], [0.0, second], [0.48, 0.36]])
    t = float(np.sqrt(np.pi / 2)) * (1 - 1e-4)
    run = odesim.integrate(SYSTEM, params={"Delta": Delta}, span=(0, t), save=2, backend="numpy", rtol=1e-9, atol=1e-12)
    yield Measurement(f"stable rank of dV/dt, lengths 1 and {second:g}", run.observables["stable_rank_dV"][-1], 1.0, 0.01)


LOW_RANK = (
    Claim(
        "galore.ties",
        Source(PAPER, "low-rank gradients of transformers", "wording recalled"),
        "joma.linear_multinode, three tokens and two nodes, to 1 - t/t* = 1e-4",
        "the gradient comes to rank one",
        lambda: at_the_blow_up(0.8),
        "what other rows have left, below .01",
        when="one row of Delta is the longest; two of one length leave rank two",
        otherwise=lambda: at_the_blow_up(1.0),
    ),
    Claim(
        "galore.rank_tails",
        Source(PAPER, "low-rank gradients of transformers", "wording recalled; the numbers by an independent script"),
        f"the closed form of {SYSTEM.name}, M = 40, K = 20, Delta of default_rng(0)",
        "gradients reach rank one exponentially sooner than V: rho_l^2 sin^2(theta_l)/rho_*^2, where V has s_l^2 sin^2(theta_l)/s_*^2",
        tails,
        "half a unit of the last digit; rounding of a stable rank near 1, some 1e-14",
        depends=("galore.ties",),
    ),
)


FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
a, b = index("a b")
(r,) = sizes("r")
P, Q = IndexedBase("P", shape=(m, r)), IndexedBase("Q", shape=(n, r))


def both_sides() -> System:
    """dW/dt = P P^T G Q Q^T, for directions P (m, r) and Q (n, r) that stay."""
    shadow = over(Sum, over(Sum, P[k, a] * at(G, {i: k, j: l}), (k, m)) * Q[l, b], (l, n))
    numbers = Interval(-oo, oo)
    return System(
        name="galore.both_sides",
        source=Source(PAPER, "Definition 3.6 and Theorem 3.8"),
        axes={i: m, j: n, k: m, l: n, s: N, a: r, b: r},
        equations={W[i, j]: over(Sum, P[i, a] * over(Sum, shadow * Q[j, b], (b, r)), (a, r))},
        params=(*PLAIN.params, Param(P, 1.0, numbers, "directions of rows"), Param(Q, 1.0, numbers, "directions of columns")),
        initial={W[i, j]: 0},
        sizes={m: 8, n: 9, N: 5, r: 3},
        span=(0.0, 20.0),
        observables={"shadow": shadow},
    )


def shadows() -> Iterable[Measurement]:
    """R = P^T G Q along the flow of the whole W, beside its own linear flow and the bound exp(-kappa t); what is left of G."""
    from scipy.linalg import expm

    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (8, 9))
    Bs, Cs = (X @ X.transpose(0, 2, 1) / X.shape[1] for X in (rng.standard_normal((5, 8, 8)), rng.standard_normal((5, 9, 9))))
    params = {"A": rng.standard_normal((5, 8, 9)), "B": Bs, "C": Cs, "P": left, "Q": right}
    run = odesim.integrate(both_sides(), params=params, span=(0, 60), save=13, **FINE)
    R = run.observables["shadow"]
    small = [(left.T @ x @ left, right.T @ y @ right) for x, y in zip(Bs, Cs, strict=True)]
    S = np.mean([np.kron(x, y) for x, y in small], axis=0)
    own = [(expm(-S * t) @ R[0].ravel()).reshape(3, 3) for t in run.t]
    yield deviation("R less exp(-S t) R(0), S the mean of P^T B P and Q^T C Q, to t = 60", R, own, 1e-8)
    kappa = np.mean([np.linalg.eigvalsh(x)[0] * np.linalg.eigvalsh(y)[0] for x, y in small])
    size = np.linalg.norm(R, axis=(1, 2))
    yield Measurement("largest |R| / (exp(-kappa t) |R(0)|)", (size / size[0] * np.exp(kappa * run.t)).max(), 1.0, 1e-9, "<=")
    yield Measurement("|R| at t = 60 / |R(0)|", size[-1] / size[0], 0.01, 0.0, "<=")
    G_of = [np.linalg.norm(gradient(x, params["A"], Bs, Cs)) for x in (run.y["W"][0], run.y["W"][-1])]
    yield Measurement("|G| at t = 60 / |G(0)|", G_of[1] / G_of[0], 0.5, 0.0, ">=")


RATE, STEPS = 0.02, 1500
Directions = Callable[[np.ndarray], np.ndarray]


def target() -> np.ndarray:
    """T (16, 24) of rank 4: the loss is |W - T|^2 / 2, its gradient with the sign turned T - W."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((16, 4)) @ rng.standard_normal((4, 24)) / 2


def all_of_them(G: np.ndarray) -> np.ndarray:
    """The directions with which Algorithm 1 is Adam itself."""
    return np.eye(len(G))


def leading(rank: int) -> Directions:
    """The leading left singular vectors of G, so many."""
    return lambda G: np.asarray(np.linalg.svd(G)[0][:, :rank])


def algorithm_1(T: np.ndarray, directions: Directions, every: int, steps: int = STEPS) -> np.ndarray:
    """W after so many steps of Algorithm 1 with Adam, from 0. directions: P (16, r) of a gradient, looked up every so many steps."""
    from odesim.lab.training.optimizers import make_optimizer
    from odesim.lab.training.task import Optimizer

    W, eye = np.zeros_like(T), [np.eye(size)[None] for size in T.shape]
    P = directions(T)
    step = {"u": np.zeros((P.shape[1], T.shape[1]))}
    adam = make_optimizer(Optimizer("adam", {"all": RATE}), {"u": "all"}, step)
    for t in range(steps):
        G = gradient(W, T[None], *eye)
        P = directions(G) if t % every == 0 else P
        step["u"][:] = 0
        adam.update(step, {"u": -P.T @ G})
        W = W + P @ step["u"]
    return W


def error(W: np.ndarray) -> float:
    """The mean squared error of W over that of 0."""
    return float(((W - target()) ** 2).sum() / (target() ** 2).sum())


def trains(every: int) -> Iterable[Measurement]:
    """What is left of the mean squared error by two directions."""
    yield Measurement("error of r = 2 / error at the start", error(algorithm_1(target(), leading(2), every)), 1e-12, 0.0, "<=")


def others() -> Iterable[Measurement]:
    """Adam itself and four directions; what two that stay leave; all of them turned, beside Adam on a turned target."""
    T = target()
    for name, directions in (("Adam", all_of_them), ("r = 4", leading(4))):
        yield Measurement(f"error of {name} / error at the start", error(algorithm_1(T, directions, 50)), 1e-9, 0.0, "<=")
    values = np.linalg.svd(T, compute_uv=False) ** 2
    left = float(values[2:].sum() / values.sum())
    yield Measurement(
        "error of r = 2, never looked up again / share of the other squared singular values",
        error(algorithm_1(T, leading(2), STEPS)) / left,
        1.0,
        1e-6,
    )
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    turned = algorithm_1(T, lambda G: turn, 50, 40)
    yield deviation(
        "r = m: W less that of Adam in turned coordinates, 40 steps", turned, turn @ algorithm_1(turn.T @ T, all_of_them, 50, 40), 1e-12
    )
    apart = float(np.abs(turned - algorithm_1(T, all_of_them, 50, 40)).max())
    yield Measurement("r = m: largest distance from Adam itself", apart, 0.05, 0.0, ">=")


SIDES = (
    Claim(
        "galore.both_sides",
        Source(PAPER, "Definition 3.6 and Theorem 3.8", "wording recalled; in continuous time"),
        "the flow dW/dt = P P^T G Q Q^T of galore.parametric_gradient's G, m = 8, n = 9, r = 3, N = 5, to t = 60",
        "R = P^T G Q has a linear flow of its own, of P^T B P and Q^T C Q, and falls at least as exp(-kappa t); G does not fall",
        shadows,
        "100 times the relative tolerance 1e-10 of the run; half of G and a hundredth of R are ours",
    ),
    Claim(
        "galore.adam",
        Source(PAPER, "Algorithm 1", "with Adam; wording recalled"),
        "Algorithm 1 on |W - T|^2 / 2, W of 16 x 24, T of rank 4: 1500 steps of .02, directions looked up every 50",
        "two directions train a target of rank four",
        lambda: trains(50),
        "none: rounding of the squares is below it",
        when="they are looked up again",
        otherwise=lambda: trains(STEPS),
        corrected=Statement(
            "two that stay leave the other singular values; with r = m it is Adam in turned coordinates, which is not Adam",
            others,
            "rounding over 40 steps; what Adam leaves after 1500",
        ),
        models=("galore.parametric_gradient",),
    ),
)


NEVER = 1e9  # a period longer than any run


def least(A: np.ndarray, B: np.ndarray, C: np.ndarray, P: np.ndarray) -> float:
    """The least loss over all W of columns in the span of P (m, r), by one linear system."""
    a = (P.T @ A.mean(axis=0)).ravel()
    S = np.mean([np.kron(P.T @ b @ P, c) for b, c in zip(B, C, strict=True)], axis=0)
    return float(-0.5 * a @ np.linalg.solve(S, a))


def losses(period: float, span: float) -> tuple[float, float, float]:
    """(loss at the end, least loss of the directions at the start, least loss)."""
    run = odesim.integrate("galore.projected", params={"period": period}, span=(0, span), save=2, **FINE)
    A, B, C, P = (run.attrs["params"][name] for name in ("A", "B", "C", "P0"))
    return float(run.observables["loss"][-1]), least(A, B, C, P), least(A, B, C, np.eye(A.shape[1]))


def fixed() -> Iterable[Measurement]:
    """Where the loss ends when directions stay, and how much of its fall is missing."""
    end, of_directions, of_all = losses(NEVER, 200.0)
    yield deviation("loss at t = 200 - least loss over the span of P", end, of_directions, 1e-9)
    yield Measurement("loss that stays / fall of the loss", (end - of_all) / -of_all, 0.1, 0.0, ">=")


def refreshed(period: float) -> Iterable[Measurement]:
    """Where the loss ends when directions are looked up."""
    end, _, of_all = losses(period, 200.0)
    yield deviation(f"loss at t = 200 - least loss, period {period:g}", end, of_all, 1e-6)


def rates() -> Iterable[Measurement]:
    """What is left of P^T G beside the bound exp(-kappa t), kappa the mean of the products of smallest eigenvalues."""
    run = odesim.integrate("galore.projected", params={"period": NEVER}, span=(0, 20), save=21, **FINE)
    B, C, P = (run.attrs["params"][name] for name in ("B", "C", "P0"))
    kappa = float(np.mean([np.linalg.eigvalsh(P.T @ b @ P)[0] * np.linalg.eigvalsh(c)[0] for b, c in zip(B, C, strict=True)]))
    left = np.linalg.norm(run.observables["shadow"], axis=(1, 2))
    yield Measurement("largest |P^T G| / (exp(-kappa t) |P^T G_0|)", (left / left[0] * np.exp(kappa * run.t)).max(), 1.0, 1e-9, "<=")
    yield Measurement("|P^T G| at t = 20 / |P^T G_0|", left[-1] / left[0], 0.01, 0.0, "<=")


REFRESH = (
    Claim(
        "galore.refresh",
        Source(PAPER, "Algorithm 1 and the sum of updates in several subspaces", "wording recalled"),
        "galore.projected at its defaults, r = 2 of 4 directions, to t = 200",
        "updates of rank r train the whole weight: the loss reaches its least value",
        lambda: refreshed(2.0),
        "the relative tolerance of the run is 1e-10, that of the end 1e-6",
        when="directions are looked up again",
        otherwise=lambda: refreshed(NEVER),
        slow=True,
    ),
    Claim(
        "galore.fixed_directions",
        Source(PAPER, "Theorem 3.8", "wording recalled; in continuous time, P on one side"),
        "galore.projected at its defaults with directions that stay, to t = 200",
        "|P^T G| falls at least as exp(-kappa t), while the loss ends at the least value over the span of P, above the least of all",
        lambda: (*rates(), *fixed()),
        "10 times the relative tolerance 1e-10 of the run; a tenth of the fall and a hundredth of P^T G are ours",
    ),
)
