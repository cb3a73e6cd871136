"""TorchGenerator: torch's numbers on a CPU. The printed ones are those of torch.manual_seed(0), in any version of PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.lab.training.randomness import TorchGenerator

Draw = Callable[[TorchGenerator], Array]
ROUNDED = 5e-9  # of torch's numbers to eight decimals
SINES = 2e-6  # torch's float32 logarithm and sines in normal numbers

PRINTED: dict[str, tuple[Draw, list[float], float]] = {
    "rand": (lambda g: g.random((5,)), [0.49625659, 0.76822180, 0.08847743, 0.13203049, 0.30742282], ROUNDED),
    "rand, 64 bits": (lambda g: g.random_double((3,)), [0.97005300, 0.70781986, 0.45938294], ROUNDED),
    "randn, few": (lambda g: g.normal((2, 3)), [1.54099607, -0.29342890, -2.17878938, 0.56843126, -1.08452237, -1.39859545], ROUNDED),
    "randn": (lambda g: g.normal((16,))[:6], [-1.12583983, -1.15236020, -0.25057858, -0.43387881, 0.84871036, 0.69200915], SINES),
    "randint": (lambda g: g.randint(10, (10,)), [4, 9, 3, 0, 3, 9, 7, 3, 7, 3], 0),
    "multinomial": (lambda g: g.multinomial(np.arange(1.0, 6), 10), [4, 4, 3, 4, 3, 4, 1, 2, 3, 2], 0),
    "no chance": (lambda g: g.multinomial(np.array([0.0, 10, 3, 0]), 4), [2, 1, 1, 2], 0),
}


@pytest.mark.parametrize("case", PRINTED)
def test_printed(case: str) -> None:
    """What torch prints after manual_seed(0)."""
    draw, expected, tolerance = PRINTED[case]
    np.testing.assert_allclose(draw(TorchGenerator(0)).ravel(), expected, rtol=0, atol=tolerance)


TORCH: dict[str, tuple[Draw, Callable[[Any], Any], float]] = {
    "rand": (lambda g: g.random((3, 5)), lambda t: t.rand(3, 5), 0),
    "rand, 64 bits": (lambda g: g.random_double((3, 5)), lambda t: t.rand(3, 5, dtype=t.float64), 0),
    "uniform_": (lambda g: g.uniform(-0.3, 0.7, (9, 9)), lambda t: t.empty(9, 9).uniform_(-0.3, 0.7), 1e-7),  # without fused arithmetic
    "Linear": (lambda g: g.uniform(-(30**-0.5), 30**-0.5, (7, 30)), lambda t: t.nn.Linear(30, 7, bias=False).weight.detach(), 1e-7),
    "randint": (lambda g: g.randint(2**28 - 1, (9,)), lambda t: t.randint(0, 2**28 - 1, (9,)), 0),
    "multinomial": (
        lambda g: g.multinomial(np.arange(1.0, 61).reshape(3, 20), 127),
        lambda t: t.multinomial(t.arange(1.0, 61).reshape(3, 20), 127, replacement=True),
        0,
    ),
} | {
    f"randn, {n}": (lambda g, n=n: g.normal((n,)), lambda t, n=n: t.randn(n), 0 if n < 16 else SINES) for n in (1, 15, 16, 40, 1003)
}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 3, 2**33 + 5])
def test_torch(seed: int) -> None:
    """Torch itself, where it is installed: all kinds of draws one after the other, twice, so that each leaves the same state."""
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(seed)
    ours = TorchGenerator(seed)
    for case, (draw, theirs, tolerance) in [*TORCH.items()] * 2:
        np.testing.assert_allclose(draw(ours), theirs(torch).double().numpy(), rtol=0, atol=tolerance, err_msg=case)


SKIPS: dict[str, tuple[int, Draw]] = {
    "rand": (6, lambda g: g.random((2, 3))),
    "rand, 64 bits": (12, lambda g: g.random_double((2, 3))),
    "randn": (35 + 16, lambda g: g.normal((5, 7))),
    "randint": (6, lambda g: g.randint(3, (6,))),
    "multinomial": (20, lambda g: g.multinomial(np.ones((2, 3)), 5)),
}


@pytest.mark.parametrize("case", SKIPS)
def test_skip(case: str) -> None:
    """skip() passes over as many outputs as the draw takes."""
    count, draw = SKIPS[case]
    one, two = TorchGenerator(7), TorchGenerator(7)
    draw(one)
    two.skip(count)
    np.testing.assert_array_equal(one.raw(3), two.raw(3))


def test_distributions() -> None:
    """Normal numbers and tokens have their laws: neither worse nor better than one run in ten thousand."""
    g = TorchGenerator(1)
    P = np.array([0.5, 0.2, 0.3])
    tokens = np.bincount(g.multinomial(P, 100_000))
    assert 1e-4 < chisquare(tokens, P * 100_000).pvalue < 1 - 1e-4
    assert 1e-4 < kstest(g.normal((100_000,)), "norm").pvalue < 1 - 1e-4


WRONG: dict[str, tuple[Draw, str]] = {
    "one": (lambda g: g.multinomial(np.ones(3), 1), "count must be at least 2, not 1"),
    "high": (lambda g: g.randint(2**28, (1,)), "high must be 1 to 268435455, not 268435456"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong(case: str) -> None:
    """What torch draws in another way is refused."""
    draw, sentence = WRONG[case]
    with pytest.raises(ParamError, match=f"^{sentence}$"):
        draw(TorchGenerator(0))
