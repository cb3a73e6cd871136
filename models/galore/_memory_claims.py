"""What the GaLore paper states of memory, from the sizes of the models, and of the rank of gradients beside that of weights."""

from collections.abc import Iterable

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.galore._memory import Llama, adam, break_even, galore, lora
from odesim.models.galore.parametric_gradient import stable_rank
from odesim.models.joma.linear_multinode import SYSTEM
from odesim.symbolic import Source

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
