"""Designs: what each member of an ensemble has of its own, known from the member's number alone.

Any shard, and any order of chunks, therefore sees the same members.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError

WORDS = 4  # that Philox gives for one value of its counter
FUNCTIONS = ("uniform", "normal")


def uniforms(seed: int, name: str, first: int, count: int) -> Array:
    """Numbers first to first + count - 1 (count,) of the stream of seed and name, strictly between 0 and 1.

    Philox counts blocks of four words, so a stream can be entered anywhere; each number takes the upper 52 bits of a word.
    """
    key = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint64)
    block, skip = divmod(first, WORDS)
    raw = np.random.Philox(counter=block, key=key).random_raw(skip + count)[skip:]
    return ((raw >> np.uint64(12)) + 0.5) * 2.0**-52  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Random:
    """A parameter or state of this shape, drawn for every member. function: uniform(a, b), or normal with mean a and deviation b."""

    name: str
    function: str
    a: float
    b: float
    seed: int
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """(N, *shape) of the members first, first + 1, ..."""
        count = prod(self.shape)
        u = uniforms(self.seed, self.name, first * count, len(members) * count)
        if self.function == "uniform":
            found = np.clip(self.a * (1 - u) + self.b * u, self.a, self.b)  # b - a may overflow
        else:
            from scipy.special import ndtri

            found = self.a + self.b * ndtri(u)
        return found.reshape(len(members), *self.shape)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "random", "name": self.name, "function": self.function, "a": self.a, "b": self.b, "seed": self.seed}


@dataclass(frozen=True)
class Points:
    """Values points (n,), each of which fills the shape, or (n, *shape), along one axis of a grid; parts that are zipped share it.

    repeat: members after which the next point comes.
    """

    name: str
    points: Array
    repeat: int = 1
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """(N, *shape), or (N,) where a number fills the shape."""
        return self.points[members // self.repeat % len(self.points)]

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "points", "name": self.name, "repeat": self.repeat}


@dataclass(frozen=True)
class Table:
    """One row a member: rows (N, *shape), an array of numpy or one on disk."""

    name: str
    table: Any
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """(N, *shape)"""
        return np.asarray(self.table[first : first + len(members)])

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "table", "name": self.name}


Part = Random | Points | Table


@dataclass(frozen=True)
class Design:
    """count members with the values of the parts; a Source of rows."""

    parts: tuple[Part, ...]
    count: int

    @property
    def names(self) -> frozenset[str]:
        """Parameters and states that are a member's own."""
        return frozenset(part.name for part in self.parts)

    def labels(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, ...)}: what names a member; one number where a number fills a shape."""
        members = np.arange(first, end)
        return {part.name: part.values(members, first) for part in self.parts}

    def rows(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, *shape)} of the members first to end - 1."""
        found = {}
        for part, values in zip(self.parts, self.labels(first, end).values(), strict=True):
            fills = values.ndim == 1 and part.shape
            wide = values.reshape(-1, *(1 for _ in part.shape)) if fills else values
            found[part.name] = np.broadcast_to(wide, (len(values), *part.shape)) if fills else values
        return found

    def with_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> "Design":
        """The same design for these shapes of a member's values. Raises ParamError where given values have another one."""
        parts = tuple(replace(part, shape=shapes[part.name]) for part in self.parts)
        for part in parts:
            own = part.points if isinstance(part, Points) else part.table if isinstance(part, Table) else None
            if own is not None and own.shape[1:] != part.shape and not (isinstance(part, Points) and own.ndim == 1):
                kind = "point" if isinstance(part, Points) else "member"
                raise ParamError(f"{part.name} must have shape ({kind}, {', '.join(map(str, part.shape))}), not {own.shape}")
        return Design(parts, self.count)

    def to_plain(self) -> list[dict[str, Any]]:
        """The design as plain data, but for points and tables."""
        return [part.to_plain() for part in self.parts]


def design_from_plain(said: list[dict[str, Any]], count: int, points: Mapping[str, Any], tables: Mapping[str, Any]) -> Design:
    """The design that said() described. points {name: (n, ...)}, tables {name: (count, ...)}. Raises KeyError, TypeError."""
    parts: list[Part] = []
    for one in said:
        rest = {key: value for key, value in one.items() if key != "kind"}
        if one["kind"] == "random":
            parts.append(Random(**rest))
        elif one["kind"] == "points":
            parts.append(Points(**rest, points=np.asarray(points[one["name"]][...])))
        else:
            parts.append(Table(**rest, table=tables[one["name"]]))
    return Design(tuple(parts), count)
