"""Sizes of a System, computed from named sizes, shapes of arrays, values of index parameters and defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odesim.base.errors import ParamError, SpecError

MOST = 2**48  # entries of one array; beyond any memory


@dataclass(frozen=True)
class Extent:
    """The length of an axis: const + sum of factor * size over terms. text: as written, "L - 1"."""

    text: str
    const: int
    terms: tuple[tuple[str, int], ...]

    def value(self, sizes: Mapping[str, int]) -> int:
        """The length for these sizes. Raises KeyError where a size is missing."""
        return self.const + sum(factor * sizes[name] for name, factor in self.terms)


def make_extent(expr: Any) -> Extent:
    """The Extent of a sympy expression or a number. Raises SpecError unless it is a sum of sizes with whole factors."""
    import sympy as sp

    parts = sp.expand(sp.sympify(expr)).as_coefficients_dict()
    const = parts.pop(sp.S.One, sp.S.Zero)
    if not all(s.is_Symbol and f.is_Integer for s, f in parts.items()) or not const.is_Integer:
        raise SpecError(f"extent {expr} is not a whole number plus multiples of sizes")
    return Extent(str(expr), int(const), tuple(sorted((s.name, int(f)) for s, f in parts.items() if f != 0)))


@dataclass
class Sizes:
    """The sizes known so far.

    values: {size: n}. sources: {size: "from P", "as given" or "by default"}. facts: observed lengths with unknown sizes in them.
    least: what a size must be at least, for the values of index parameters.
    """

    values: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[Extent, int, str]] = field(default_factory=list)
    least: dict[str, int] = field(default_factory=dict)

    def set(self, name: str, n: int, source: str) -> None:
        """Sets a size. Raises ParamError unless 1 <= n <= MOST."""
        if n < 1:
            raise ParamError(f"size {name} = {n} {source}: a size is at least 1")
        if n > MOST:
            raise ParamError(f"size {name} = {n} {source}: no memory holds that many")
        self.values[name], self.sources[name] = n, source

    def observe(self, extents: Iterable[Extent], shape: Iterable[int], name: str) -> None:
        """Records that the array `name` has this shape; solve() draws the conclusions."""
        self.facts.extend((extent, n, name) for extent, n in zip(extents, shape, strict=True) if extent.terms)

    def solve(self) -> None:
        """Computes the sizes that follow from the recorded shapes. Raises ParamError where two shapes disagree."""
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
        known = self.text(size for size, _ in extent.terms)
        size, factor = extent.terms[0]
        if len(extent.terms) == 1 and (n - extent.const) % factor == 0:
            return f"sizes disagree: {known}, {size} = {(n - extent.const) // factor} from {name}"
        return f"sizes disagree: {known}, {extent.text} = {n} from {name}"

    def has_all(self, extents: Iterable[Extent]) -> bool:
        """Whether all sizes in these extents are known."""
        return all(size in self.values for extent in extents for size, _ in extent.terms)

    def shape(self, extents: Iterable[Extent], name: str) -> tuple[int, ...]:
        """The shape of an array. Raises ParamError where an axis is empty or the array cannot exist."""
        out, entries = [], 1
        for extent in extents:
            n = extent.value(self.values)
            if n < 1:
                raise ParamError(
                    f"{name}: its axis {extent.text} is {n} long ({self.text(s for s, _ in extent.terms)}); it must be at least 1"
                )
            out.append(n)
            entries *= n
        if entries > MOST:
            raise ParamError(f"{name} would have {entries:.3g} entries ({self.text(self.values)}), more than any memory holds")
        return tuple(out)

    def text(self, names: Iterable[str]) -> str:
        """These sizes with their sources as text, such as `K = 3 from P, S = 4 by default`."""
        return ", ".join(f"{name} = {self.values[name]} {self.sources[name]}" for name in names)
