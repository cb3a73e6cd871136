"""Symbolic shapes as numbers; sympy is used only the first time."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from odesim.base.errors import CodegenError


def extents(shape: tuple[Any, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A symbolic shape as a tuple of ints. Raises CodegenError unless each length is a whole number plus multiples of sizes."""
    return tuple(const + sum(factor * sizes[name] for name, factor in terms) for const, terms in map(_affine, shape))


@lru_cache(maxsize=4096)
def _affine(e: Any) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The constant and the factors of a length: 2*L - 1 -> (-1, (("L", 2),))."""
    parts = sp.expand(sp.sympify(e)).as_coefficients_dict()
    const = parts.pop(sp.S.One, sp.S.Zero)
    if not all(s.is_Symbol and f.is_Integer for s, f in parts.items()):
        raise CodegenError(f"extent {e} is not a whole number plus multiples of sizes")
    return int(const), tuple(sorted((s.name, int(f)) for s, f in parts.items()))
