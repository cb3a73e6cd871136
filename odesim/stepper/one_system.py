"""Prints the text of a step as the driver of one system of any size, for any method: stages in a loop, the method in a table.

A driver for each method would unroll the stages, and run no faster: what a stage costs is the right-hand side, which a driver calls by
its address. It would be compiled anew for every method (1.1 to 1.7 s each, where this one takes as long once for all of them).

Numbers of the run are locals of one function, read from NUMBERS at its start and written at its end. Rows are addresses. A combination
goes to the right-hand side's own `stage` and `combine`: only these know whether stages lie scaled, and they fuse it with their first loop.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from odesim.base.parsing import margin, parse
from odesim.stepper.lanes import Placed
from odesim.stepper.readers import CHECKED, EXPLICIT, numbers_of_control, step_text
from odesim.stepper.statements import (
    Comb,
    Do,
    Each,
    If,
    Known,
    Let,
    Out,
    Reader,
    Right,
    Row,
    Stages,
    Statement,
    Sum,
    Swap,
    Take,
    While,
    copied,
    exposed,
    names_in,
    stage_of,
    written,
)
from odesim.stepper.table import NOISE

RULES = ("odesim.stepper.control",)
"""The modules among the sources whose functions take only numbers: the text compiles them, and Python may call them."""
SEARCH_MODULES = ("odesim.stepper.search_samples", "odesim.stepper.search")
"""The modules of the search for zeros, whose source names what is compiled with it."""
SHARED = ("odesim.stepper.operations", "odesim.stepper.powers", *RULES, *SEARCH_MODULES, "odesim.stepper.crossings")
"""What the printed driver calls, on the processor as on a GPU, in the order in which their text is joined."""
SWITCHES = ("ADAPTIVE", "CHOOSES", "SAVES", "EVENTS", "LAWS")
METHOD = ("ALPHA", "BETA", "SHRINK", "GROW", "START_POWER", "SECOND", "UNSEEN")
TRUTHS = (*SWITCHES, "SECOND", "UNSEEN")
COUNTED = ("phase", "left", "turn", "calls")
"""Numbers of the driver's own: whether it has begun, steps before it returns, which of the first two rows of WORK is the state,
right-hand sides."""
TABLES = {"A": ("at[A] + 8 * {row} * ALL", "{row}"), "E": ("at[E] + 8 * {row} * (LAST + 1)", "LAST + 1")}
"""Of a table of weights: where a row begins, and how many stages it spans."""
HEAD = """from math import inf, nan, sqrt


@helper
def grid(at: Any, q: float) -> float:
    return doubles(at[TIMES])[int(q)] if int(q) < at[SAVED_TIMES] else inf
"""
FORM = '''
@loops
def {form}_of_block({block}) -> float:
    """The sum over i = lo..hi-1 (at most 1024); e begins at lo. Uses the first 32 of SUMS; up to 64 are added in sequence."""
    sums, single = doubles(at[SUMS]), at[WIDTH] == 4
    lanes = 32 if hi - lo > 64 else 1
    for j in range(lanes):
        sums[j] = 0.0
    for start in range(lo, hi, lanes):
        rest = hi - start
        for j in range(rest if rest < lanes else lanes):
            i = start + j
            {load}
            sums[j] += {value}
    return tree_sum(at, np.int64(0), lanes)


@helper
def {form}({whole}) -> float:
    """The sum over all components, e = (y or 0) + sum_j coef[j] k_j over ns stages: blocks of 1024, as odesim.runtime.sums."""
    sums = doubles(at[SUMS])
    blocks = (at[N] + 1023) // 1024
    for k in range(blocks):
        lo = 1024 * k
        hi = lo + 1024 if lo + 1024 < at[N] else at[N]
        call(at[COMBINE], (at[TABLE], y, at[K], at[ORDER], at[COEF], ns, lo, hi, at[BLOCK]))
        sums[32 + k] = {form}_of_block({arguments})
    return tree_sum(at, np.int64(32), blocks)
'''
# both loops in one function cost 12 % of a run of 1e4 components (one process, turn about)
TERM = """
def {form}_of({entries}) -> float:
    return {value}
"""
RUN = '''
def run(address: int) -> int:
    """Continues the run whose table is at this address for at most `left` steps; returns its Code."""
    at = ints(address)
    numbers, coef, order, stop, counts = doubles(at[NUMBERS]), doubles(at[COEF]), ints(at[ORDER]), ints(at[STOP]), ints(at[COUNTS])
    n, last_stage, all_stages, none = at[N], at[LAST], at[ALL], np.int64(0)
{load}
    row = n * at[WIDTH]
{rows}
    at[Y], at[Z], at[X] = y, z, x
    if phase == 0.0:
        phase = 1.0
{begin}
        if code == {RUNNING}:
{first}
    full = False
    while code == {RUNNING} and left > 0.0 and stop[0] == 0 and not full:
        left = left - 1.0
        full = at[ROOM] - counts[FOUND] < at[NEEDED]
        if not full:
{aim}
            if small:
                code = {STEP_TOO_SMALL}
            else:
{step}
                if accept:
{after}
{store}
    return {BUFFER_FULL:.0f} if full else int(code)
'''


@dataclass(frozen=True)
class Driver:
    """The printed driver: the text of its functions, the names of its NUMBERS in their order, and its sums over components.

    sums: {name: (rows beside the combination, numbers)} as their names; a term is NAME_of(a component of each, the numbers), in terms.
    """

    text: str
    terms: str
    numbers: tuple[str, ...]
    sums: dict[str, tuple[list[str], list[str]]]

    @cached_property
    def places(self) -> dict[str, int]:
        """{number: its place}."""
        return {name: i for i, name in enumerate(self.numbers)}


class Scalars(ast.NodeTransformer):
    """A scalar expression whose names are those of the driver."""

    names: ClassVar = {"LAST": "last_stage", "ALL": "all_stages", "C": "times_of_stages", "D": "drifts_of_stages"}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(self.names.get(node.id, node.id))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(a) for a in node.args]
        return ast.Call(node.func, [ast.Name("at"), *arguments] if ast.unparse(node.func) == "grid" else arguments, [])


def _value(e: ast.expr) -> str:
    return ast.unparse(Scalars().visit(copied(e)))


def _factor(e: ast.expr | None) -> str:
    return "1.0" if e is None else _value(e)


@dataclass(frozen=True)
class Kind:
    """What runs of one kind of methods have in common.

    text: that of their step. known: constants of it. method: names of the numbers of a method; tables: its tables of weights, as TABLES has
    them; of_stages: those of a number a stage. rows: those of WORK in their order; the first two take turns. calls: modules whose
    functions the driver calls beside SHARED; reads: tables that it reads beside RUN and COUNTS.
    """

    text: str
    known: Known
    method: tuple[str, ...]
    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    of_stages: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[str, ...] = ("y", "z", "x")
    calls: tuple[str, ...] = ()
    reads: tuple[np.dtype, ...] = ()


class Printer:
    """Prints statements as lines of the function `run`. by_state: each state has its own absolute tolerance."""

    places: tuple[str, ...] = ()
    """The NUMBERS of another driver whose runs this one continues."""

    def __init__(self, kind: Kind, by_state: bool) -> None:
        self.kind, self.numbers = kind, numbers_of_control()
        self.reader = Reader(step_text(kind.text, by_state), {"TOGETHER": False, **kind.known, **self.numbers})
        self.forms: set[str] = set()

    def driver(self) -> Driver:
        text, read = self.reader.text, self.reader.read
        begin, first, aim, step = read("begin"), read("first_looks", "first_save"), read("aim"), read("step", "judge")
        after = read("search", "save", "accept")
        parts = {"begin": (begin, 8), "first": (first, 12), "aim": (aim, 12), "step": (step, 16), "after": (after, 20)}
        words = {word: "\n".join(" " * spaces + line for line in self._part(word, part)) for word, (part, spaces) in parts.items()}
        # what a step reads of what an earlier one, or the beginning, has written: it outlives a call of the driver. Derived, since a list
        # by hand would miss what is new in the text, and a run in slices would then differ from one in one go
        once, again = begin + first, aim + step + after
        carried = (exposed(once) | exposed(again)) & (written(once) | written(again))
        inherited = sorted(x for x in carried if isinstance(x, str) and x not in text.rows)
        constant = (*text.common, *self.kind.method, *SWITCHES)
        changing = (*COUNTED, *(x for x in inherited if x not in self.reader.logical))
        numbers = self.places or (*constant, *changing)
        there = {*constant, *changing}
        load = [f"{x} = numbers[{i}]{' != 0.0' if x in TRUTHS else ''}" for i, x in enumerate(numbers) if x in there]
        load += ["atol = at[ATOL]"] if "atol" in text.rows else []
        load += [f"{x} = False" for x in inherited if x in self.reader.logical]  # each step sets it before it reads it
        store = [f"numbers[{i}] = {x}" for i, x in enumerate(numbers) if x in changing]
        tables = [f"{name} = doubles(at[{slot}])" for slot, name in self.kind.of_stages.items()]
        lines = {"load": load, "store": store, "rows": [*tables, *self._row_lines()]}
        run = RUN.format(**{word: "\n".join(margin(part)) for word, part in lines.items()}, **words, **self.numbers)
        forms = sorted(self.forms)
        functions = "\n".join([HEAD, *map(self._form, forms), run])
        return Driver(functions, "\n".join(map(self._term, forms)), numbers, {form: self._parts_of(form)[2:] for form in forms})

    def _row_lines(self) -> list[str]:
        """Lines that name the addresses of rows; those that take turns change places with each accepted step."""
        lines = ["y, z = at[WORK] + int(turn) * row, at[WORK] + (1 - int(turn)) * row"]
        return [*lines, *(f"{x} = at[WORK] + {j} * row" for j, x in enumerate(self.kind.rows) if j > 1)]

    def _form(self, form: str) -> str:
        """A named sum of the text as a function."""
        value, e, rows, scalars = self._parts_of(form)
        load = [f"{e} = entry(e, i - lo, single)", *(f"{x} = entry({x}_row, i, single)" for x in rows)]
        at, addresses, numbers = "at: Any", [f"{x}_row: int" for x in rows], [f"{x}: float" for x in scalars]
        return FORM.format(
            form=form, load="\n            ".join(load), value=ast.unparse(value),
            block=", ".join([at, "e: int", *addresses, "lo: int", "hi: int", *numbers]),
            whole=", ".join([at, "y: int", "ns: int", *addresses, *numbers]),
            arguments=", ".join(["at", "at[BLOCK]", *(f"{x}_row" for x in rows), "lo", "hi", *scalars]),
        )  # fmt: skip

    def _term(self, form: str) -> str:
        """A term of a named sum as a function of numbers."""
        value, e, rows, scalars = self._parts_of(form)
        return TERM.format(form=form, entries=", ".join(f"{x}: float" for x in (e, *rows, *scalars)), value=ast.unparse(value))

    def _parts_of(self, form: str) -> tuple[ast.expr, str, list[str], list[str]]:
        """Of a named sum: what is added, the name of the combination in it, those of rows, its arguments first, and those of numbers."""
        function = self.reader.text.functions[form]
        result, (e, *rows) = function.body[-1], [a.arg for a in function.args.args]
        assert isinstance(result, ast.Return) and isinstance(result.value, ast.Call)
        value = result.value.args[0]
        names = sorted(str(x) for x in names_in(value) - {e, *rows})
        return value, e, [*rows, *(x for x in names if x in self.reader.text.rows)], [x for x in names if x not in self.reader.text.rows]

    def _part(self, name: str, statements: list[Statement]) -> list[str]:
        """The lines of a part of RUN, by its name there."""
        return self._lines(statements)

    # -- statements

    def _lines(self, statements: list[Statement]) -> list[str]:
        return [line for s in statements for line in self._statement(s)]

    def _statement(self, s: Statement) -> list[str]:
        match s:
            case Let(names, value):
                return [f"{', '.join(names)} = {_value(value)}"]
            case Sum():
                lines, base, count = self._combination(s.arguments[0])
                self.forms.add(s.form)
                _, _, rows, scalars = self._parts_of(s.form)
                values = [_value(a) for a in s.arguments[1:]]
                arguments = ["at", base, count, *values, *rows[len(values) :], *scalars]
                return [*lines, f"{s.name} = {s.form}({', '.join(arguments)})"]
            case Right():
                return self._right(s, s.keep or "none")
            case Each(row, value):
                return self._fill(value, _place(row))
            case Out(place, value):
                return self._fill(value, f"at[OUT] + int({place}) * row")
            case Take(row, source, _):  # only a step that is accepted comes here; addresses change places, no numbers move
                a, b = map(_place, (row, source))
                turned = ["turn = 1.0 - turn", "at[Y], at[Z] = y, z"] if row == "y" else []
                return [f"{a}, {b} = {b}, {a}", *turned]
            case Swap(one, other):
                return [f"{one}, {other} = {other}, {one}"]
            case Do(names, what, arguments):
                call = f"{what}({', '.join(['at', *map(_value, arguments)])})"
                return [f"{', '.join(map(str, names))} = {call}" if names else call]
            case If(test, yes, no):
                rest = ["else:", *margin(self._lines(no))] if no else []
                return [f"if {_value(test)}:", *margin(self._lines(yes)), *rest]
            case While(test, body):
                return [f"while {_value(test)}:", *margin(self._lines(body))]
            case Stages():
                return self._stages(s)
        raise TypeError(s)

    def _stages(self, s: Stages) -> list[str]:
        """A loop over stages. A state that the loop itself does not read is left by its last round alone: nothing else may read it."""
        lines = list[str]()
        for part in s.body:
            others = [other for other in s.body if other is not part]
            # z = None saves a pass over memory in each stage but the last: 9 % of a run of 1e5 components
            if isinstance(part, Right) and part.keep and part.keep not in exposed([part, *others]):
                lines += self._right(part, f"{part.keep} if {s.index} == {_value(s.last)} else none")
            else:
                lines += self._statement(part)
        return [f"for {s.index} in range({_value(s.first)}, {_value(s.last)} + 1):", *margin(lines)]

    def _right(self, s: Right, keep: str) -> list[str]:
        lines, base, count = self._combination(s.state)
        arguments = f"at[TABLE], {_value(s.time)}, {base}, at[K], at[ORDER], at[COEF], {count}, {s.row[1]}, {keep}"
        return [*lines, f"call(at[STAGE], ({arguments}))", "calls = calls + 1.0"]

    def _fill(self, value: ast.expr, target: str) -> list[str]:
        lines, base, count = self._combination(value)
        return [*lines, f"fill(at, {base}, {count}, {target})"]

    def _combination(self, e: ast.expr) -> tuple[list[str], str, str]:
        """Lines that set the weights of a combination of stages, its base, and how many stages it spans; e: that, a stage or a row."""
        match e:
            case Comb(factor=factor) if e.terms:
                weights = [w if factor is None else ast.BinOp(factor, ast.Mult(), w) for _, w in e.terms]
                lines = [f"coef[{j}] = {_value(w)}" for (j, _), w in zip(e.terms, weights, strict=True)]
                return lines, e.base or "none", f"np.int64({max(j for j, _ in e.terms) + 1})"
            case Comb(factor=factor, weights=ast.Subscript(value=ast.Name(id=table), slice=index)):
                start, span = (_value(parse(part.format(row=ast.unparse(index)), "eval").body) for part in self.kind.tables[table])
                return [f"weigh(at, {_factor(factor)}, {start}, {span})"], e.base or "none", span
            case Comb(factor=None, weights=ast.Name(id=table)):
                start, span = self.kind.tables[table]
                return [f"weigh(at, 1.0, {start}, {_value(parse(span, 'eval').body)})"], e.base or "none", _value(parse(span, "eval").body)
            case Comb(factor=factor, weights=ast.Call(args=[theta])):
                return [f"weigh_inside(at, {_factor(factor)}, {_value(theta)})"], e.base or "none", "all_stages"
            case ast.Subscript(slice=stage):
                place = f"np.int64({stage.value!r})" if isinstance(stage, ast.Constant) else _value(stage)
                return [f"weigh_one(at, {place})"], "none", f"{place} + 1"
            case ast.Name(id=row):
                return [], row, "none"
        raise ValueError(f"no combination of stages: {ast.dump(e)}")


def _place(row: Row) -> str:
    """The place of a row that is taken: an address, or that of a stage in the order of stages."""
    return row if isinstance(row, str) else f"order[{Scalars.names.get(str(row[1]), row[1])}]"


# The same of a Rosenbrock step, or of a stabilised one: elementwise loops, all else by address.
#
# Rows are float64, whatever the type of the system. A combination of stages within an expression goes to a row of its own first (`part`).

STABILISED = ("ALPHA", "BETA", "SHRINK", "GROW", "START_POWER", "MOST_STAGES", "SMALL")
ROSENBROCK_NUMBERS = ("GAMMA", "PART", "START_POWER", "ERROR_POWER", "MOST_LESS", "SHRINK", "GROW")
IMPLICIT_TABLES = {
    "A": ("at[A] + 8 * {row} * ALL", "{row}"), "G": ("at[TO_SOLVE] + 8 * {row} * ALL", "{row}"),
    "CHECK": ("at[CHECKS]", "ALL"), "CHECK_SLOPE": ("at[CHECKS] + 8 * all_stages", "ALL"),
}  # fmt: skip
PAIRS = {"f": "f_z", "J": "J_z"}
"""Rows that take turns as the state and the new one do."""
IN_PLACE = ("drift", "restore")
"""What changes the row that it is given first."""


class _Printer(Printer):
    """Prints statements on rows in memory: WORK holds them, the stages K, the Jacobian JACOBIANS."""

    def _row_lines(self) -> list[str]:
        turns = ["f, f_z = at[WORK] + (3 + int(turn)) * row, at[WORK] + (4 - int(turn)) * row"]
        turns += ["J, J_z = jacobian_row(at, turn), jacobian_row(at, 1.0 - turn)"] if self.kind.known["IMPLICIT"] else []
        return [line for line in super()._row_lines() if not line.startswith(("f ", "f_z "))] + turns

    def _statement(self, s: Statement) -> list[str]:
        match s:
            case Sum():
                return [*self._each("part", s.value), f"{s.name} = row_sum(at, part)"]
            case Right(row, time, state, keep):
                return [*self._each(keep, state), f"right(at, {_value(time)}, {keep}, {self._address(row)})", "calls = calls + 1.0"]
            case Each(row, value):
                return self._each(row, value)
            case Take(row, source, _) if row in PAIRS:
                return [f"{row}, {source} = {source}, {row}"]
            case Do() if s.what not in self.reader.text.watches:
                return self._do(s)
        return super()._statement(s)

    def _each(self, row: Row, value: ast.expr) -> list[str]:
        """Lines that set a row to an expression."""
        target, same = self._address(row), self._row_of(value)
        if same is not None and self._address(same) == target:
            return []
        if isinstance(value, Comb | ast.Name):
            return self._fill(value, target)
        combinations = [e for e in ast.walk(value) if isinstance(e, Comb)]
        lines = [line for e in combinations for line in self._fill(e, "part")]
        entries = Placed(
            self.reader.text.rows, lambda row: f"doubles({self._address(row)})[i]",
            lambda x: "i" if x == "COMPONENT" else Scalars.names.get(x, x), lambda _: "doubles(part)[i]",
        )  # fmt: skip
        entry = ast.unparse(entries.visit(copied(value)))
        return [*lines, "for i in range(n):", *margin([f"doubles({target})[i] = {entry}"])]

    def _do(self, s: Do) -> list[str]:
        lines, arguments = list[str](), ["at"]
        for e in s.arguments:
            row = self._row_of(e)
            if row is not None and not (s.what in IN_PLACE and self._address(row) == self._address(s.names[0])):
                arguments.append(self._address(row))
            elif row is not None or names_in(e) & {*self.reader.text.rows} or any(isinstance(x, Comb) for x in ast.walk(e)):
                lines += self._each(s.names[0], e)  # goes where the result does
            else:
                arguments.append(_value(e))
        rows = [r for r in s.names if isinstance(r, tuple) or r in self.reader.text.rows]
        numbers = [str(r) for r in s.names if r not in rows]
        call = f"{s.what}({', '.join([*arguments, *map(self._address, rows)])})"
        counted = ["calls = calls + 1.0"] if s.what == "linear" else []
        return [*lines, f"{', '.join(numbers)} = {call}" if numbers else call, *counted]

    def _row_of(self, e: ast.expr) -> Row | None:
        """The row that an expression is."""
        row = stage_of(e) if isinstance(e, ast.Subscript) else e.id if isinstance(e, ast.Name) else ""
        return row if (row if isinstance(row, str) else row[0]) in self.reader.text.rows else None

    def _address(self, row: Row) -> str:
        return row if isinstance(row, str) else f"at[K] + {Scalars.names.get(str(row[1]), row[1])} * row"


KINDS = {
    "explicit": Kind("explicit", EXPLICIT, METHOD, TABLES, {"C": "times_of_stages"}),
    "implicit": Kind(
        "implicit", {"IMPLICIT": True, "NOISY": False, "STABILISED": False, "LOOPS": False, "CHECKED": CHECKED}, ROSENBROCK_NUMBERS,
        IMPLICIT_TABLES, {"C": "times_of_stages", "DRIFTS": "drifts_of_stages"},
        rows=("y", "z", "x", "f", "f_z", "b", "q", "unit", "within", "part"), calls=("odesim.stepper.linear_steps",),
    ),
    "stabilised": Kind(
        "stabilised", {"IMPLICIT": False, "NOISY": False, "STABILISED": True}, STABILISED,
        rows=("y", "z", "x", "f", "f_z", "w", "q", "way", "unit", "part"), calls=("odesim.stepper.linear_steps",),
    ),
}  # fmt: skip
KINDS["noisy"] = replace(KINDS["explicit"], known={**EXPLICIT, "NOISY": True}, calls=("odesim.stepper.noise_draw",), reads=(NOISE,))


@cache
def driver_of(kind: str, by_state: bool) -> Driver:
    """The driver of one system by methods of this kind. by_state: each state has its own absolute tolerance."""
    return (Printer if KINDS[kind].text == "explicit" else _Printer)(KINDS[kind], by_state).driver()
