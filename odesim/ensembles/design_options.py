"""Designs as people ask for them: `vary`, `grid`, `zipped` and `members` as a Design."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.arguments import EnsembleArguments
from odesim.ensembles.design import FUNCTIONS, Design, Part, Points, Random, Table
from odesim.ensembles.members import Members, make_members
from odesim.errors import ParamError, counted, no_such
from odesim.inputs.bind import bind
from odesim.inputs.grammar import parse_number, show_text
from odesim.inputs.schema import Place, make_schema
from odesim.inputs.tables import read_table
from odesim.inputs.values import Value, parse_value
from odesim.symbolic.system import System

MAX_MEMBERS = 10**10  # members; more is a slip of the finger
GRIDS = ("linspace", "logspace")
_CALL = re.compile(r"\s*([^\W\d]\w*)\s*\((.*)\)\s*", re.DOTALL)


def design_members(system: System, asked: EnsembleArguments, seed: int) -> Members:
    """The members of a design.

    vary {name: text or table}: `uniform(a,b)`, `normal(m,s)` drawn for each of `members`, or (N, *shape) a row each.
    grid {name: text or points}: every combination, the first name the slowest. zipped: all together, as one more axis, the fastest.
    Raises ParamError.
    """
    plan = make_schema(system)
    slots = {slot.name: slot for slot in (*plan.params, *plan.states)}
    given = {"set": asked.params, "init": asked.initial, "vary": asked.vary, "grid": asked.grid, "zip": asked.zipped}
    check_names(plan.name, slots, given)
    seed = check_seed(seed)
    made = {name: grid_points(slots[name], value, "--grid") for name, value in asked.grid.items()}
    together = {name: grid_points(slots[name], value, "--zip") for name, value in asked.zipped.items()}
    counts = {name: len(points) for name, points in together.items()}
    if len(set(counts.values())) > 1:
        raise ParamError(f"zipped values go together: {', '.join(f'{name} has {n}' for name, n in counts.items())}")
    parts: list[Part] = [vary_part(slots[name], value, seed) for name, value in asked.vary.items()]
    inner = next(iter(counts.values()), 1)
    sides = [len(points) for points in made.values()]
    for k, (name, points) in enumerate(made.items()):
        parts.append(Points(name, points, prod(sides[k + 1 :]) * inner))
    parts += [Points(name, points) for name, points in together.items()]
    design = Design(tuple(parts), member_count(parts, asked.members, prod(sides) * inner if made or together else None))
    typical = {part.name: typical_value(part, slots[part.name]) for part in parts}
    states = {slot.name for slot in plan.states}
    numbers = bind(
        system,
        params={**asked.params, **{n: v for n, v in typical.items() if n not in states}},
        initial={**asked.initial, **{n: v for n, v in typical.items() if n in states}},
        sizes=asked.sizes,
        span=asked.span,
        seed=seed,
    )
    shapes = {name: np.shape(value) for name, value in {**numbers.params, **numbers.initial}.items()}
    source = design.with_shapes(shapes)
    return make_members(system, asked.params, asked.initial, sizes=numbers.sizes, span=asked.span, seed=seed, source=source)


def check_names(model: str, slots: Mapping[str, Place], given: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises ParamError where a name is none of the System's, or has its values from two places."""
    seen: dict[str, str] = {}
    for option, values in given.items():
        for name in values:
            if option not in ("set", "init") and name not in slots:
                raise ParamError(no_such("parameter or state", str(name)[:60], slots, model))
            if name in seen:
                raise ParamError(f"{name} is given twice: --{seen[name]} and --{option}")
            seen[name] = option


def check_seed(seed: Any) -> int:
    """seed as an int from 0 up. Raises ParamError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParamError(f"seed must be a whole number, at least 0, not {seed!r}")
    return int(seed)


def member_count(parts: list[Part], members: Any, combinations: int | None) -> int:
    """How many members there are; combinations: those of grid and zip. Raises ParamError."""
    if members is not None and (isinstance(members, bool) or not isinstance(members, int | np.integer) or not 1 <= members <= MAX_MEMBERS):
        raise ParamError(f"members must be a whole number, 1 to {MAX_MEMBERS}, not {members!r}")
    if combinations is not None and members is not None:
        raise ParamError(f"--members and --grid or --zip: these already make {counted(int(combinations), 'member')}")
    tables = {part.name: len(part.table) for part in parts if isinstance(part, Table)}
    asked = combinations if combinations is not None else members
    for name, n in tables.items():
        asked = n if asked is None else asked
        if n != asked:
            raise ParamError(f"members disagree: {name} has {counted(n, 'row')} for {counted(int(asked), 'member')}")
    if not parts:
        raise ParamError(
            "an ensemble needs members that differ: --vary 'NAME=uniform(a,b)', --grid 'NAME=linspace(a,b,n)' or --zip NAME=1,2,3"
        )
    if asked is None:
        raise ParamError(f"how many members should be drawn for {parts[0].name}? give --members N")
    if asked > MAX_MEMBERS:
        raise ParamError(f"{counted(int(asked), 'member')} are more than {MAX_MEMBERS}")
    return int(asked)


def vary_part(slot: Place, value: Any, seed: int) -> Part:
    """What `--vary` says of one parameter or state. Raises ParamError."""
    where = f"--vary {slot.name}"
    if isinstance(value, str):
        value = parse_value(value, where)
    if not isinstance(value, Value):
        return Table(slot.name, check_numbers(value, where, slot.rank + 1))
    if value.kind == "fill":
        function, a, b = value.data
        if function not in FUNCTIONS:
            raise ParamError(f"{where}: {value.text} is not drawn at random: write --grid {slot.name}={function}(a,b,n), or --set")
        if slot.integer:
            raise ParamError(f"{where}: {function} draws no whole numbers, and {slot.name} takes no others; give a table of them")
        return Random(slot.name, function, a, b, seed)
    if value.kind == "number":
        raise ParamError(f"{where}: {value.text} is the same for every member: write --set or --init {slot.name}={value.text}")
    return Table(slot.name, check_numbers(load_table(value, where, slot.rank + 1), where, slot.rank + 1))


def grid_points(slot: Place, value: Any, option: str) -> Array:
    """(n,) or (n, *shape): the points of a grid or zip. Raises ParamError."""
    where = f"{option} {slot.name}"
    if isinstance(value, str):
        call = _CALL.fullmatch(value)
        if call and call[1] in GRIDS:
            return spaced_points(call[1], call[2], where)
        value = parse_value(value, where)
    if isinstance(value, Value):
        if value.kind == "fill":
            raise ParamError(f"{where}: write linspace(a,b,n), logspace(a,b,n), 1,2,3 or @file.npy, not {value.text}")
        value = np.array([value.data]) if value.kind == "number" else load_table(value, where, 1)
    array = np.asarray(value)
    return np.array(check_numbers(value, where, 1 if array.ndim == 1 else slot.rank + 1), np.int64 if array.dtype.kind in "iub" else float)


def spaced_points(function: str, inside: str, where: str) -> Array:
    """The numbers (n,) of linspace(a,b,n) or logspace(a,b,n). Raises ParamError."""
    pieces = inside.split(",")
    if len(pieces) != 3:
        raise ParamError(f"{where}: {function} takes two numbers and how many points, as in {function}(0,1,5), not {show_text(inside)}")
    a, b = (float(parse_number(piece, where)) for piece in pieces[:2])
    n = parse_number(pieces[2], where)
    if not isinstance(n, int) or not 1 <= n <= MAX_MEMBERS:
        raise ParamError(f"{where}: the number of points is a whole number, 1 to {MAX_MEMBERS}, not {pieces[2].strip()[:60]}")
    with np.errstate(over="ignore"):
        found = (np.linspace if function == "linspace" else np.logspace)(a, b, n)
    if not np.isfinite(found).all():
        raise ParamError(f"{where}: {function}({inside[:60]}) overflows: numbers go up to 1.8e308")
    return found


def load_table(value: Value, where: str, rank: int) -> Any:
    """The array of a list or file; a .npy file is read when its rows are asked for. Raises ParamError."""
    if value.kind == "list":
        return np.array(value.data)
    if not str(value.data).lower().endswith(".npy"):
        return read_table(value.data, rank, where)
    try:
        return np.lib.format.open_memmap(value.data, mode="r")
    except Exception:  # the sentence is that of every table
        return read_table(value.data, rank, where)


def check_numbers(value: Any, where: str, rank: int) -> Any:
    """value as an array of this rank with at least one row. Raises ParamError."""
    try:
        array = np.asanyarray(value)
    except (ValueError, TypeError) as error:
        raise ParamError(f"{where} is not an array of numbers: {' '.join(str(error).split())[:120]}") from None
    if array.dtype.kind not in "iuf":
        raise ParamError(f"{where} must hold numbers, not {array.dtype}")
    if array.ndim != rank or not len(array):
        raise ParamError(f"{where} needs {rank} {'axes' if rank > 1 else 'axis'}, the first one that of the members; got {array.shape}")
    return array


def typical_value(part: Part, slot: Place) -> Any:
    """What stands for the values of a part where sizes are found: a number, an array, or what will fill the shape."""
    if isinstance(part, Random):
        return Value("fill", (part.function, part.a, part.b), f"{part.function}({part.a:g},{part.b:g})", slot.name)
    own = part.points if isinstance(part, Points) else part.table
    for first in range(0, len(own), 4096):
        rows = np.asarray(own[first : first + 4096])
        fine = np.flatnonzero(np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
        if len(fine):
            return rows[fine[0]] if rows.ndim > 1 else rows[fine[0]].item()
    raise ParamError(f"{slot.name} is not finite in any member")
