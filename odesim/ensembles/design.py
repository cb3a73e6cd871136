"""Designs: the parameters and initial values of each member of an ensemble, computed from the member's number.

Members are therefore the same in any shard and any order of chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError

WORDS = 4  # random words of Philox for one value of its counter
FUNCTIONS = ("uniform", "normal")


def uniforms(seed: int, name: str, first: int, count: int) -> Array:
    """Random numbers first to first + count - 1 (count,) of the stream of seed and name, strictly between 0 and 1.

    Philox counts blocks of four words, so a stream can be entered anywhere; each number takes the upper 52 bits of a word.
    """
    key = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint64)
    block, skip = divmod(first, WORDS)
    raw = np.random.Philox(counter=block, key=key).random_raw(skip + count)[skip:]
    return ((raw >> np.uint64(12)) + 0.5) * 2.0**-52  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Random:
    """A parameter or state drawn at random for every member. function: uniform(a, b), or normal with mean a and deviation b."""

    name: str
    function: str
    a: float
    b: float
    seed: int
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """Values (N, *shape) of the members first, first + 1, ... (members (N,))."""
        count = prod(self.shape)
        u = uniforms(self.seed, self.name, first * count, len(members) * count)
        if self.function == "uniform":
            values = np.clip(self.a * (1 - u) + self.b * u, self.a, self.b)  # b - a may overflow
        else:
            from scipy.special import ndtri

            values = self.a + self.b * ndtri(u)
        return values.reshape(len(members), *self.shape)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "random", "name": self.name, "function": self.function, "a": self.a, "b": self.b, "seed": self.seed}


@dataclass(frozen=True)
class Points:
    """Given values along one axis of a grid: points (n, *shape), or (n,), each of which fills the shape.

    Zipped parts share an axis. repeat: neighbouring members with the same point.
    """

    name: str
    points: Array
    repeat: int = 1
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """Values (N, *shape) of these members, or (N,) if a number fills the shape."""
        return self.points[members // self.repeat % len(self.points)]

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "points", "name": self.name, "repeat": self.repeat}


@dataclass(frozen=True)
class Table:
    """A table with a row for each member: (N, *shape), in memory or on disk."""

    name: str
    table: Any
    shape: tuple[int, ...] = ()

    def values(self, members: Array, first: int) -> Array:
        """Values (N, *shape) of the members first, first + 1, ..."""
        return np.asarray(self.table[first : first + len(members)])

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "table", "name": self.name}


Part = Random | Points | Table


@dataclass(frozen=True)
class Design:
    """`count` members whose values come from parts, one for each parameter or state; a MemberRows."""

    parts: tuple[Part, ...]
    count: int

    @property
    def names(self) -> frozenset[str]:
        """Parameters and states that differ between members."""
        return frozenset(part.name for part in self.parts)

    def labels(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, ...)} of the members first to end - 1: one number where a number fills a shape."""
        members = np.arange(first, end)
        return {part.name: part.values(members, first) for part in self.parts}

    def rows(self, first: int, end: int) -> dict[str, Array]:
        """{name: (end - first, *shape)} of the members first to end - 1."""
        rows = {}
        for part, values in zip(self.parts, self.labels(first, end).values(), strict=True):
            fills = values.ndim == 1 and part.shape
            wide = values.reshape(-1, *(1 for _ in part.shape)) if fills else values
            rows[part.name] = np.broadcast_to(wide, (len(values), *part.shape)) if fills else values
        return rows

    def with_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> "Design":
        """The design for these shapes {name: shape} of a member's values. Raises ParamError if points or tables have others."""
        parts = tuple(replace(part, shape=shapes[part.name]) for part in self.parts)
        for part in parts:
            array = part.points if isinstance(part, Points) else part.table if isinstance(part, Table) else None
            if array is not None and array.shape[1:] != part.shape and not (isinstance(part, Points) and array.ndim == 1):
                kind = "point" if isinstance(part, Points) else "member"
                raise ParamError(f"{part.name} must have shape ({kind}, {', '.join(map(str, part.shape))}), not {array.shape}")
        return Design(parts, self.count)

    def to_plain(self) -> list[dict[str, Any]]:
        """The design as plain data, without the numbers of points and tables."""
        return [part.to_plain() for part in self.parts]


def part_kinds(descriptions: list[dict[str, Any]]) -> dict[str, str]:
    """{name: `random`, `table`, `grid` or `zip`} of parts as to_plain() describes them; zipped points change together."""
    points = [part["repeat"] for part in descriptions if part["kind"] == "points"]
    return {
        part["name"]: part["kind"] if part["kind"] != "points" else "zip" if points.count(part["repeat"]) > 1 else "grid"
        for part in descriptions
    }


def design_from_plain(descriptions: list[dict[str, Any]], count: int, points: Mapping[str, Any], tables: Mapping[str, Any]) -> Design:
    """The design from to_plain() of its parts. points {name: (n, ...)}, tables {name: (count, ...)}. Raises KeyError, TypeError."""
    parts: list[Part] = []
    for description in descriptions:
        rest = {key: value for key, value in description.items() if key != "kind"}
        if description["kind"] == "random":
            parts.append(Random(**rest))
        elif description["kind"] == "points":
            parts.append(Points(**rest, points=np.asarray(points[description["name"]][...])))
        else:
            parts.append(Table(**rest, table=tables[description["name"]]))
    return Design(tuple(parts), count)
