"""The functions that feed lanes and threads with members, printed from their one text (feed.py) for a plan.

The text is parsed and never run. Branches on constants that switch are decided, `each` loops of known length are written out, a function of
nothing stands for its lines, and one of an expression for that. What is left is printed.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from odesim.base.parsing import parse
from odesim.run.lane_plan import AT, REALS, KernelPlan, Rows
from odesim.stepper.codes import WORDS
from odesim.stepper.search_samples import MARKS
from odesim.stepper.statements import Fold, Text, copied
from odesim.stepper.table import places
from odesim.targets.cache import source_of

UNSEEN = 64
"""The most steps without a look."""
LOOK = 256
"""Steps of a thread between two looks at whether the run should stop: what is asked lies in the memory of the host."""
MANY = 2.0
"""The side of what is to be searched alone."""
FLAGS = (
    "THREAD", "LOOPS", "SAVES", "EVENTS", "TERMINAL", "PARTS", "FIXED", "STIFF", "LOOKS", "MARCHES", "JOINED", "QUEUED", "CALLED",
    "DISCRETE", "LIMITED", "GIVEN_FIRST", "KEEPS", "BY_POWERS", "SUMS", "NOISE", "PAIRS", "BY_STATE",
)  # fmt: skip


class Frames(Fold):
    """The functions of a text with these constants known. A known text stands for an expression.

    rows: the values of row.NAME. tables {name of a table: {column: its place}}: `at.SAVE` is a number of one.
    """

    def __init__(self, text: Text, known: Mapping[str, Any], rows: Mapping[str, int], tables: Mapping[str, Mapping[str, int]]) -> None:
        self.functions, self.tables = text.functions, tables
        pieces: Any = SimpleNamespace(functions={name: f for name, f in text.functions.items() if not f.decorator_list}, rows={})
        super().__init__(pieces, {**known, "row": SimpleNamespace(**rows)}, None)

    def printed(self, *names: str) -> list[str]:
        """The texts of these functions."""
        return [ast.unparse(self._function(copied(self.functions[name]))) for name in names]

    def _function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body, node.lineno = self._block(node.body), 0
        return ast.fix_missing_locations(node)

    def _block(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [s for node in body for s in self._statements(node)]

    def _statements(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.If(test=test, body=yes, orelse=no):
                test = self.visit(test)
                if isinstance(test, ast.Constant):
                    return self._block(yes if test.value else no)
                return [ast.If(test, self._block(yes) or [ast.Pass()], self._block(no))]
            case ast.While(test=test, body=body):
                return [ast.While(self.visit(test), self._block(body), [])]
            case ast.For(target=target, iter=ast.Call(func=ast.Name(id="each"), args=[count])):
                return self._each(target, self.visit(count), body=node.body)
            case ast.For(target=target, iter=over, body=body):
                return [ast.For(target, self.visit(over), self._block(body), [])]
            case ast.Expr(value=ast.Constant()):  # a docstring
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id=piece), args=[])) if piece in self.text.functions:
                return self._block(copied(self.functions[piece].body))
        return [self.visit(node)]

    def _each(self, target: ast.expr, count: ast.expr, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A loop over so many, or over known values, written out; over an unknown number it stays a loop."""
        if isinstance(count, ast.Constant):
            values: Iterable[Any] = range(int(str(count.value)))
        elif isinstance(count, ast.Name) and count.id in self.known:
            values = self.known[count.id]
        else:
            return [ast.For(target, ast.Call(ast.Name("range"), [count], []), self._block(body), [])]
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
        out: list[ast.stmt] = []
        for value in values:
            self.known |= zip(names, value if len(names) > 1 else [value], strict=True)
            out += self._block(copied(body))
        for name in names:
            self.known.pop(name, None)
        return out

    def visit_Name(self, node: ast.Name) -> Any:
        value = self.known.get(node.id)
        return parse(value, "eval").body if isinstance(value, str) else super().visit_Name(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self.tables:
            return ast.Subscript(node.value, ast.Constant(self.tables[node.value.id][node.attr]))
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.known[a.value.id] if isinstance(a, ast.Starred) and isinstance(a.value, ast.Name) else [a] for a in node.args]
        node.args = [ast.Name(a) if isinstance(a, str) else a for part in arguments for a in part]
        if not isinstance(node.func, ast.Name):  # of numpy
            self.generic_visit(node)
            return node
        return super().visit_Call(node)


@cache
def feed_text(module: str = "feed") -> Text:
    """The parsed text."""
    return Text(source_of(f"odesim.run.{module}"))


def frames(width: int, rows: Mapping[str, int], **known: Any) -> Frames:
    """The text for lanes whose rows begin at these numbers of S; switches that are not named are off."""
    lists: dict[str, Any] = {"OWN": [], "BEFORE": [], "BEGUN": [], "READ": []}
    constants = {"W": width, "UNSEEN": float(UNSEEN), "LOOK": LOOK, "MANY": MANY, "MARKS": MARKS}
    return Frames(
        feed_text(), {**WORDS, **dict.fromkeys(FLAGS, False), **lists, **constants, **known}, rows, {"at": AT, "reals": places(REALS)}
    )


def start_rows(rows: Rows) -> list[int]:
    """The rows of a member that are known before it gets a lane."""
    return [*rows.f, *rows.slopes, rows.h, rows.code, *rows.g]


def feed_texts(plan: KernelPlan, rows: Rows, thread: bool = False) -> list[str]:
    """The functions for lanes, which end in run(table), or those for a thread, which end in member(at, S, T, zeros, i)."""
    w, f, watch, start = plan.width, plan.formulas, plan.watch, start_rows(rows)
    begins = {name: (row.start if isinstance(row, range) else row) * w for name, row in vars(rows).items() if isinstance(row, int | range)}
    marks = enumerate(pairwise([*f.values.values(), f.count]))
    fixed = ("t0", "t1", "rtol", "atol")
    known: dict[str, Any] = {
        "THREAD": thread, "N": f.states, "SAVES": bool(plan.saves), "EVENTS": watch is not None, "PARTS": plan.parts, "FIXED": plan.fixed,
        "STIFF": plan.stiff, "LOOKS": plan.looks, "MARCHES": plan.marches, "JOINED": plan.joined, "QUEUED": plan.queued,
        "CALLED": bool(plan.called), "DISCRETE": plan.discrete, "LIMITED": plan.limited, "GIVEN_FIRST": not plan.chooses,
        "NOISE": plan.noise is not None, "PAIRS": plan.noise is not None and plan.noise.pairs,
        "BY_STATE": plan.by_state, "BY_POWERS": plan.by_powers, "SUMS": len(rows.sums), "BEFORE": [row * w for row in rows.last],
        "OWN": [(AT["PARAMS"] + 2 * k, rows.p[first] * w, end - first) for k, (first, end) in marks if end > first],
        "KNOWN": [(k, row * w) for k, row in enumerate(start)], "STARTED": len(start),
        "OLD_ERROR": 0.0 if plan.stiff else "LOG2_LEAST_OLD",
        "GIVEN": fixed, "STEPPED": (*fixed, "most", *(("fixed", "rest", "total") if plan.fixed else ())),
    }  # fmt: skip
    if watch is not None:
        known |= {"TERMINAL": watch.terminal, "KEEPS": watch.keeps}
        begins["samples"] = rows.samples[0].start * w
        known |= {"SIZE": watch.size, "PIECES": watch.pieces, "ROOM": watch.room, "NAMES": watch.names}
    wanted = {"lower": watch, "higher": watch, "sample": watch and not plan.probed, "judged": not plan.fixed, "free": plan.marches}
    wanted |= {"push": plan.queued, "flush": plan.queued}
    ends = ("member",) if thread else ("fill", "run", *(("rates",) if plan.rounds else ()))
    return frames(w, {**begins, "count": rows.count * w}, **known).printed(*(name for name, want in wanted.items() if want), *ends)
