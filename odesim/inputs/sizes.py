"""Sizes from whatever was given: named sizes, shapes of arrays, values of index parameters, defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odesim.errors import ParamError, SpecError

MOST = 2**48  # entries of one array; beyond any memory


@dataclass(frozen=True)
class Extent:
    """The length of an axis: const + sum of factor * size over terms. text: as a person writes it, "L - 1"."""

    text: str
    const: int
    terms: tuple[tuple[str, int], ...]

    def value(self, sizes: Mapping[str, int]) -> int:
        """The length where the sizes are known. Raises KeyError."""
        return self.const + sum(factor * sizes[name] for name, factor in self.terms)


def make_extent(expr: Any) -> Extent:
    """An extent from a sympy expression or a number. Raises SpecError unless it is affine with whole factors."""
    import sympy as sp

    parts = sp.expand(sp.sympify(expr)).as_coefficients_dict()
    const = parts.pop(sp.S.One, sp.S.Zero)
    if not all(s.is_Symbol and f.is_Integer for s, f in parts.items()) or not const.is_Integer:
        raise SpecError(f"extent {expr} is not a whole number plus multiples of sizes")
    return Extent(str(expr), int(const), tuple(sorted((s.name, int(f)) for s, f in parts.items() if f != 0)))


@dataclass
class Sizes:
    """What is known so far. values: {size: n}; sources: {size: "from P", "as given" or "by default"}.

    facts: lengths seen whose sizes are not all known yet.
    """

    values: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[Extent, int, str]] = field(default_factory=list)

    def set(self, name: str, n: int, source: str) -> None:
        """Fixes a size. Raises ParamError unless 1 <= n <= MOST."""
        if n < 1:
            raise ParamError(f"size {name} = {n} {source}: a size is at least 1")
        if n > MOST:
            raise ParamError(f"size {name} = {n} {source}: no memory holds that many")
        self.values[name], self.sources[name] = n, source

    def observe(self, extents: Iterable[Extent], shape: Iterable[int], name: str) -> None:
        """Notes that the array of that name has this shape; settle() draws the conclusions."""
        self.facts.extend((extent, n, name) for extent, n in zip(extents, shape, strict=True) if extent.terms)

    def settle(self) -> None:
        """Solves and checks every fact that has at most one unknown size left. Raises ParamError where two disagree."""
        before = -1
        while self.facts and before != len(self.facts):
            before = len(self.facts)
            self.facts = [fact for fact in self.facts if not self._use(*fact)]

    def _use(self, extent: Extent, n: int, name: str) -> bool:
        unknown = [term for term in extent.terms if term[0] not in self.values]
        if len(unknown) > 1:
            return False
        if not unknown:
            if extent.value(self.values) != n:
                raise ParamError(self._disagree(extent, n, name))
            return True
        size, factor = unknown[0]
        rest = n - extent.value({**self.values, size: 0})
        if rest % factor or rest // factor < 1:
            raise ParamError(f"{name} has an axis of {n}, which is {extent.text}: no {size} of at least 1 gives that")
        self.set(size, rest // factor, f"from {name}")
        return True

    def _disagree(self, extent: Extent, n: int, name: str) -> str:
        known = ", ".join(f"{size} = {self.values[size]} {self.sources[size]}" for size, _ in extent.terms)
        size, factor = extent.terms[0]
        if len(extent.terms) == 1 and (n - extent.const) % factor == 0:
            return f"sizes disagree: {known}, {size} = {(n - extent.const) // factor} from {name}"
        return f"sizes disagree: {known}, {extent.text} = {n} from {name}"

    def knows(self, extents: Iterable[Extent]) -> bool:
        """Whether every size in the extents is known."""
        return all(size in self.values for extent in extents for size, _ in extent.terms)

    def shape(self, extents: Iterable[Extent], name: str) -> tuple[int, ...]:
        """The shape of an array. Raises ParamError where an axis is empty or the array cannot exist."""
        out, entries = [], 1
        for extent in extents:
            n = extent.value(self.values)
            if n < 1:
                raise ParamError(
                    f"{name}: its axis {extent.text} is {n} long ({self.words(s for s, _ in extent.terms)}); it must be at least 1"
                )
            out.append(n)
            entries *= n
        if entries > MOST:
            raise ParamError(f"{name} would have {entries:.3g} entries ({self.words(self.values)}), more than any memory holds")
        return tuple(out)

    def words(self, names: Iterable[str]) -> str:
        """`K = 3 from P, S = 4 by default`."""
        return ", ".join(f"{name} = {self.values[name]} {self.sources[name]}" for name in names)
