"""Designs: how the parameters and initial values of members are chosen, and their values, computed from the number of a member.

Members are therefore the same in any shard and any order of chunks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import check_fits
from odesim.base.errors import ParamError, counted, no_such, value_text
from odesim.base.options import DESIGNS, MAX_MEMBERS, Values
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.sequences import SEQUENCES, check_sequence, sequence
from odesim.inputs.arguments import check_count
from odesim.inputs.bind import as_array, bind, check_seed
from odesim.inputs.grammar import RANGE, Value, parse_number, parse_value, read_table, show_text
from odesim.inputs.schema import Place, Schema, make_schema
from odesim.symbolic.system import System

# A counter-based generator, because a member's numbers must follow from its number alone: a shard, a chunk on another machine and a
# resumed run enter the stream where they need it. numpy's normal() takes a varying count of words, so that nobody could enter its stream:
# uniform numbers are drawn, and the normal ones are their quantiles.
LEAST = 2.0**-53
WORDS = 4  # random words of Philox for one value of its counter
FUNCTIONS = ("uniform", "loguniform", "normal")


def uniforms(seed: int, name: str, first: int, count: int) -> Array:
    """Random numbers first to first + count - 1 (count,) of the stream of seed and name, strictly between 0 and 1.

    Philox counts blocks of four words, so a stream can be entered anywhere; each number takes the upper 52 bits of a word.
    """
    key = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint64)
    block, skip = divmod(first, WORDS)
    raw = np.random.Philox(counter=block, key=key).random_raw(skip + count)[skip:]
    # the middle of each of 2^52 cells: never 0 or 1, whose quantiles are infinite
    return ((raw >> np.uint64(12)) + 0.5) * 2.0**-52


def quantiles(function: str, a: float, b: float, u: Array) -> Array:
    """The numbers below which the parts u of uniform(a, b), loguniform(a, b), or normal with mean a and deviation b lie: shape of u."""
    if function == "normal":
        from scipy.special import ndtri

        return np.asarray(a + b * ndtri(u))
    if function == "loguniform":
        return np.clip(np.exp(np.log(a) * (1 - u) + np.log(b) * u), a, b)
    return np.clip(a * (1 - u) + b * u, a, b)  # b - a may overflow


@dataclass(frozen=True)
class Random:
    """A parameter or state drawn at random for every member. function: one of FUNCTIONS, with its two numbers."""

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
        return quantiles(self.function, self.a, self.b, u).reshape(len(members), *self.shape)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "random", "name": self.name, "function": self.function, "a": self.a, "b": self.b, "seed": self.seed}


CHECKED = 1000
"""The number of the point of which one number is stored, to tell when another scipy makes other points."""


@dataclass(frozen=True)
class Spread(Random):
    """A parameter or state whose values fill their range evenly, together with the others of the design, for every `members` members.

    design: one of SEQUENCES. before, dimensions: numbers of a point that belong to parts before this one, and all of them. check: a
    number of a point as it was stored; None where the design is new.
    """

    design: str = "sobol"
    members: int = 1
    before: int = 0
    dimensions: int = 1
    check: float | None = None

    def checked(self) -> float:
        """The first number of the point CHECKED, or of the last one, by this scipy; Raises ParamError if it made another one then."""
        k = min(CHECKED, self.members - 1)
        here = float(sequence(self.design, self.seed, self.dimensions, self.members, k, k + 1)[0, self.before])
        if self.check not in (None, here):
            raise ParamError(
                f"the points of the design {self.design} are made by scipy, and this version makes others: point {k} has {here!r} "
                f"for {self.name}, and had {self.check!r}; with the version of then members stay what they were"
            )
        return here

    def values(self, members: Array, first: int) -> Array:
        """Values (N, *shape) of the members first, first + 1, ... (members (N,))."""
        points = sequence(self.design, self.seed, self.dimensions, self.members, first, first + len(members))
        # the normal distribution has no quantile at 0, which a point of Sobol may be
        u = points[:, self.before : self.before + prod(self.shape)]
        u = np.clip(u, LEAST, 1 - LEAST) if self.function == "normal" else u
        return quantiles(self.function, self.a, self.b, u).reshape(len(members), *self.shape)

    def to_plain(self) -> dict[str, Any]:
        return {**super().to_plain(), "kind": self.design, "members": self.members, "check": self.checked()}


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
        places = iter(np.cumsum([0, *(prod(part.shape) for part in parts if isinstance(part, Spread))]).tolist())
        total = sum(prod(part.shape) for part in parts if isinstance(part, Spread))
        parts = tuple(replace(part, before=next(places), dimensions=total) if isinstance(part, Spread) else part for part in parts)
        for part in parts:
            if isinstance(part, Spread):
                part.checked()
        return Design(parts, self.count)

    def to_plain(self) -> list[dict[str, Any]]:
        """The design as plain data, without the numbers of points and tables."""
        return [part.to_plain() for part in self.parts]


def part_kinds(descriptions: list[dict[str, Any]]) -> dict[str, str]:
    """{name: `random`, `sobol`, ..., `table`, `grid` or `zip`} of parts as to_plain() describes them; zipped points change together."""
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
        elif description["kind"] in SEQUENCES:
            parts.append(Spread(**rest, design=description["kind"]))
        elif description["kind"] == "points":
            parts.append(Points(**rest, points=np.asarray(points[description["name"]][...])))
        else:
            parts.append(Table(**rest, table=tables[description["name"]]))
    return Design(tuple(parts), count)


GRIDS = ("linspace", "logspace")
COPIES = 3  # of evenly spaced points, in memory at once while they are made
_CALL = re.compile(r"\s*([^\W\d]\w*)\s*\((.*)\)\s*", re.DOTALL)


def design_members(system: System, arguments: Values, seed: int) -> Members:
    """The members that the arguments describe.

    vary {name: text or table}: `uniform(a,b)`, `loguniform(a,b)` or `normal(m,s)`, for each of `members`, or a table (N, *shape).
    grid {name: text or points}: all combinations, the first name varies slowest. zipped: one more axis, the fastest, with all its
    names together. With a grid and random values `members` is the number of draws at each point; they are neighbours, and those of a
    design other than random are the same at each point. Raises ParamError.
    """
    schema = make_schema(system)
    places = {place.name: place for place in (*schema.params, *schema.states)}
    options = {"set": arguments.params, "init": arguments.initial, "vary": arguments.vary, "grid": arguments.grid, "zip": arguments.zipped}
    check_names(schema, options)
    seed = check_seed(seed)
    grid = {name: grid_points(places[name], value, "--grid") for name, value in arguments.grid.items()}
    zipped = {name: grid_points(places[name], value, "--zip") for name, value in arguments.zipped.items()}
    counts = {name: len(points) for name, points in zipped.items()}
    if len(set(counts.values())) > 1:
        raise ParamError(f"zipped values go together: {', '.join(f'{name} has {n}' for name, n in counts.items())}")
    parts: list[Part] = [vary_part(places[name], value, seed) for name, value in arguments.vary.items()]
    sides, inner = [len(points) for points in grid.values()], next(iter(counts.values()), 1)
    alike = bool(system.noise)  # members with the same numbers are different paths
    draws = draws_at_each_point(parts, arguments.members, prod(sides) * inner, alike) if grid or zipped else 1
    inner *= draws
    for k, (name, points) in enumerate(grid.items()):
        parts.append(Points(name, points, prod(sides[k + 1 :]) * inner))
    parts += [Points(name, points, draws) for name, points in zipped.items()]
    count = member_count(parts, None, prod(sides) * inner) if grid or zipped else member_count(parts, arguments.members, None, alike)
    parts = spread_parts(parts, arguments.design, draws if grid or zipped else count)
    design = Design(tuple(parts), count)
    typical = {part.name: typical_value(part, places[part.name]) for part in parts}
    states = {place.name for place in schema.states}
    numbers = bind(
        system,
        params={**arguments.params, **{n: v for n, v in typical.items() if n not in states}},
        initial={**arguments.initial, **{n: v for n, v in typical.items() if n in states}},
        sizes=arguments.sizes,
        span=arguments.span,
        seed=seed,
    )
    shapes = {name: np.shape(value) for name, value in {**numbers.params, **numbers.initial}.items()}
    source = design.with_shapes(shapes)
    for part in source.parts:
        if isinstance(part, Spread):
            check_sequence(part.design, part.members, part.dimensions)
    return make_members(system, arguments.params, arguments.initial, sizes=numbers.sizes, span=arguments.span, seed=seed, source=source)


def spread_parts(parts: list[Part], design: Any, members: int) -> list[Part]:
    """The parts, with random ones placed by this design of so many members. Raises ParamError."""
    if design not in DESIGNS:
        raise ParamError(no_such("design", str(design), DESIGNS))
    if design == DESIGNS[0]:
        return parts
    if not any(isinstance(part, Random) for part in parts):
        raise ParamError(f"design {design} places random values, and none are: give --vary 'NAME=uniform(a,b)' and --members N")
    return [Spread(**vars(part), design=design, members=members) if isinstance(part, Random) else part for part in parts]


def check_names(schema: Schema, options: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises ParamError if a name is not in the System or is given twice."""
    sources, known = dict[str, str](), [place.name for place in (*schema.params, *schema.states)]
    for option, values in options.items():
        for name in values:
            if option not in ("set", "init") and name not in known:
                raise ParamError(no_such("parameter or state", str(name)[:60], known, schema.name))
            if name in sources:
                raise ParamError(f"{name} is given twice: --{sources[name]} and --{option}")
            sources[name] = option


def draws_at_each_point(parts: list[Part], members: Any, points: int, alike: bool = False) -> int:
    """How many members each point of a grid has: `members`, 1 where it is None. Raises ParamError if nothing in parts is random.

    alike: members may have the same numbers.
    """
    members = None if members is None else check_count("members", members)
    if members is not None and not alike and not any(isinstance(part, Random) for part in parts):
        already = f"--grid and --zip already make {counted(points, 'member')}"
        raise ParamError(f"{already}; --members counts random draws at each of these points: give --vary 'NAME=uniform(a,b)' too")
    return members or 1


def member_count(parts: list[Part], members: Any, combinations: int | None, alike: bool = False) -> int:
    """The number of members. combinations: of grid and zip, or None. alike: members may have the same numbers.

    Raises ParamError if numbers disagree or none is given.
    """
    members = None if members is None else check_count("members", members)
    tables = {part.name: len(part.table) for part in parts if isinstance(part, Table)}
    count = combinations if combinations is not None else members
    for name, n in tables.items():
        count = n if count is None else count
        if n != count:
            raise ParamError(f"members disagree: {name} has {counted(n, 'row')} for {counted(int(count), 'member')}")
    if not parts and not (alike and count is not None):
        raise ParamError(
            "an ensemble of paths needs their number: --members N"
            if alike
            else "an ensemble needs members that differ: --vary 'NAME=uniform(a,b)', --grid 'NAME=linspace(a,b,n)' or --zip NAME=1,2,3"
        )
    if count is None:
        raise ParamError(f"how many members should be drawn for {parts[0].name}? give --members N")
    if count > MAX_MEMBERS:
        raise ParamError(f"{counted(int(count), 'member')} are more than {MAX_MEMBERS}")
    return int(count)


def vary_part(place: Place, value: Any, seed: int) -> Part:
    """The Part of one parameter or state that `--vary` describes. Raises ParamError."""
    where = f"--vary {place.name}"
    if isinstance(value, str):
        if (call := _CALL.fullmatch(value)) and call[1] in GRIDS:
            points = value if call[2].count(",") == 2 else f"{call[1]}(a,b,n)"
            raise ParamError(f"{where}: {value} is not drawn at random: write --grid {place.name}={points}, or --set")
        if ends := RANGE.fullmatch(value):
            even = f"--grid {place.name}=linspace({ends[1]},{ends[2]},{_points_meant(value, where) if ends[3] else 'n'})"
            meant = f"uniform({ends[1]},{ends[2]}) for numbers drawn at random, {even} for even ones"
            raise ParamError(f"{where}: {show_text(value)} is not a number; write {meant}")
        value = parse_value(value, where)
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        raise ParamError(f"{where}: a distribution is text, as in 'uniform(0, 1)', not {value_text(value)}")
    if not isinstance(value, Value):
        return Table(place.name, as_numbers(value, where, place.rank + 1))
    if value.kind == "fill":
        function, a, b = value.data
        if place.integer:
            raise ParamError(f"{where}: {function} draws no whole numbers, and {place.name} takes no others; give a table of them")
        return Random(place.name, function, a, b, seed)
    if value.kind == "number":
        raise ParamError(f"{where}: {value.text} is the same for every member: write --set or --init {place.name}={value.text}")
    return Table(place.name, as_numbers(load_table(value, where, place.rank + 1), where, place.rank + 1, source_of(value)))


def grid_points(place: Place, value: Any, option: str) -> Array:
    """The points (n,) or (n, *shape) of a grid or zip. option: `--grid` or `--zip`, for messages. Raises ParamError."""
    where = f"{option} {place.name}"
    if isinstance(value, str):
        call = _CALL.fullmatch(value)
        if call and call[1] in GRIDS:
            return spaced_points(call[1], call[2], where)
        if value.count(":") in (1, 2) and "(" not in value and not value.startswith("@"):
            a, b, *number = (piece.strip() for piece in value.split(":"))
            for end in (a, b):
                parse_number(end, where, "; write linspace(a,b,n), logspace(a,b,n), 1,2,3 or @file.npy")
            if not number:
                raise ParamError(f"{where}: {show_text(value)} lacks the number of points (start:stop:number): write linspace({a},{b},n)")
            wanted = f"linspace({a},{b},{_points_meant(value, where)})"
            raise ParamError(f"{where}: write {wanted} for points from the first number to the second")
        value = parse_value(value, where)
    source = source_of(value)
    if isinstance(value, Value):
        if value.kind == "fill":
            drawn = f"--vary {place.name}={value.text} draws at random"
            raise ParamError(f"{where}: write linspace(a,b,n), logspace(a,b,n), 1,2,3 or @file.npy, not {value.text}; {drawn}")
        value = np.array([value.data]) if value.kind == "number" else load_table(value, where, 1)
    array = as_array(value, where)
    return np.array(
        as_numbers(value, where, 1 if array.ndim == 1 else place.rank + 1, source), np.int64 if array.dtype.kind in "iub" else float
    )


def _points_meant(text: str, where: str) -> int:
    """The number of points of a:b:c, where c is that number, or else the step. Raises ParamError."""
    a, b, c = (parse_number(piece, where) for piece in text.split(":"))
    steps = c - 1 if isinstance(c, int) and c > 1 else (float(b) - float(a)) / c if c else 0
    if not 1 <= steps < MAX_MEMBERS:
        raise ParamError(f"{where}: write linspace(a,b,n) for n points from a to b, not {show_text(text)}")
    return round(steps) + 1


def spaced_points(function: str, inside: str, where: str) -> Array:
    """The numbers (n,) of linspace(a,b,n) or logspace(a,b,n). Raises ParamError."""
    pieces = inside.split(",")
    if len(pieces) != 3:
        raise ParamError(f"{where}: {function} takes two numbers and how many points, as in {function}(0,1,5), not {show_text(inside)}")
    a, b = (float(parse_number(piece, where)) for piece in pieces[:2])
    n = parse_number(pieces[2], where)
    if not isinstance(n, int) or not 1 <= n <= MAX_MEMBERS:
        raise ParamError(f"{where}: the number of points is a whole number, 1 to {MAX_MEMBERS}, not {pieces[2].strip()[:60]}")
    check_fits(f"{where}: {function} with {counted(n, 'point')}", {"the points and the steps to them": COPIES * n}, 8)
    with np.errstate(over="ignore"):
        points = (np.linspace if function == "linspace" else np.logspace)(a, b, n)
    if not np.isfinite(points).all():
        raise ParamError(f"{where}: {function}({inside[:60]}) overflows: numbers go up to 1.8e308")
    return points


def source_of(value: Any) -> str:
    """The file that a value names, for messages."""
    return str(value.data) if isinstance(value, Value) and value.kind not in ("list", "number") else "the array"


def load_table(value: Value, where: str, rank: int) -> Any:
    """The array of a list or file; rows of a .npy file are read when used. Raises ParamError."""
    if value.kind == "list":
        return np.array(value.data)
    if not str(value.data).lower().endswith(".npy"):
        return read_table(value.data, rank, where)
    # a table of 10^7 members may be larger than the memory, and a shard reads its rows only
    try:
        return np.lib.format.open_memmap(value.data, mode="r")
    except Exception:  # read_table raises the error for all tables
        return read_table(value.data, rank, where)


def as_numbers(value: Any, where: str, rank: int, source: str = "the array") -> Any:
    """value as a numeric array of this rank with at least one row. source: the file, for messages. Raises ParamError."""
    array = as_array(value, where)
    if array.dtype.kind not in "iuf":
        raise ParamError(f"{where} must hold numbers, not {array.dtype}")
    if rank == 1 and array.ndim == 2:
        rows, columns = (counted(n, word) for n, word in zip(array.shape, ("row", "column"), strict=True))
        raise ParamError(f"{where} takes one column of numbers, and {source} has {rows} and {columns}")
    if array.ndim != rank or not len(array):
        raise ParamError(
            f"{where} needs {rank} {'axes' if rank > 1 else 'axis'}, the first one that of the members; it has shape {array.shape}"
        )
    return array


def typical_value(part: Part, place: Place) -> Any:
    """The value of a part for one typical member, from which sizes follow. Raises ParamError if no member has finite values."""
    if isinstance(part, Random):
        return Value("fill", (part.function, part.a, part.b), f"{part.function}({part.a:g},{part.b:g})", place.name)
    values = part.points if isinstance(part, Points) else part.table
    for first in range(0, len(values), 4096):
        rows = np.asarray(values[first : first + 4096])
        finite = np.flatnonzero(np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        if len(finite):
            return rows[finite[0]] if rows.ndim > 1 else rows[finite[0]].item()
    raise ParamError(f"{place.name} is not finite in any member")
