"""Reads a step that is written as restricted Python into statements on named rows of memory.

The text (step.py, with explicit.py, implicit.py or stabilised.py) is parsed and never run. Reading it for a method puts its functions in
place, folds what is known (the tables of the method, which control, whether states are saved), unrolls its loops over stages, and makes
each sum over components a statement of its own. What is left are the eleven kinds of statement below, which are plain data: a target
prints from them and knows nothing else of a step.

What a target loads, stores, copies or may drop is derived from what statements read and write (`reads_writes`, `exposed`, `written`).
The lists of that which were kept by hand before were where mistakes were made.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from odesim.base.parsing import parse

StageRow = tuple[str, int | str]
Row = str | StageRow
"""A row by its name, or stage j of the row k as ("k", j); j is a text where the method is not known."""
Known = Mapping[str, Any]


class Comb(ast.expr):
    """base + factor (w_0 k_0 + w_1 k_1 + ...), a combination of stages: an expression of its own kind.

    Targets differ most in how they compute it. One system hands it to the right-hand side, which fuses it with its first loop and knows
    whether stages lie scaled; lanes write it out. All of them multiply factor w_j first: with contraction too that is 2.5 to 5 % faster
    than factor (w_0 k_0 + ...), and it is the only form whose bits do not depend on how sums are written.
    terms: (j, w_j) where they are known. Else `weights` is the text's own expression for all w_j, for a target that reads tables.
    """

    _fields = ("factor",)

    def __init__(
        self, base: str = "", factor: ast.expr | None = None, terms: Sequence[tuple[int, ast.expr]] = (), weights: ast.expr | None = None
    ) -> None:
        super().__init__()
        self.base, self.factor, self.terms, self.weights = base, factor, list(terms), weights


@dataclass
class Let:
    """names = a scalar expression; several names: of a function with as many results."""

    names: list[str]
    value: ast.expr


@dataclass
class Sum:
    """name = the sum of an expression over the components, in the one order of all targets.

    form, arguments: the text's own function of which the expression is the body, for a target that prints functions.
    """

    name: str
    value: ast.expr
    form: str = ""
    arguments: list[ast.expr] = field(default_factory=list)


@dataclass
class Right:
    """A row = right-hand side at a time and a state, a row or a combination; that state is left in the row `keep`, if one is named."""

    row: Row
    time: ast.expr
    state: ast.expr
    keep: str


@dataclass
class Each:
    """A row = an expression, for each component."""

    row: Row
    value: ast.expr


@dataclass
class Take:
    """row = source where `when` holds. The source is not read afterwards, so a target may swap addresses."""

    row: Row
    source: Row
    when: str


@dataclass
class Swap:
    """Two rows change places."""

    row: str
    other: str


@dataclass
class Out:
    """A saved state: number `place` of a member = an expression for each component."""

    place: str
    value: ast.expr


@dataclass
class Do:
    """What a target alone can do, by its name: the search for events, a linear system. names: its results, numbers and rows."""

    names: list[Row]
    what: str
    arguments: list[ast.expr]


@dataclass
class If:
    """Statements where a test holds, and others where it does not."""

    test: ast.expr
    yes: list["Statement"]
    no: list["Statement"] = field(default_factory=list)


@dataclass
class While:
    """Statements as long as a test holds."""

    test: ast.expr
    body: list["Statement"]


@dataclass
class Stages:
    """Statements for index = first ... last: only where the method is not known, otherwise they are unrolled."""

    index: str
    first: ast.expr
    last: ast.expr
    body: list["Statement"]


Statement = Let | Sum | Right | Each | Take | Swap | Out | Do | If | While | Stages


def copied(node: Any) -> Any:
    """A copy of a syntax tree without its places in a file: copy.deepcopy takes ten times as long, which a warm start would notice."""
    match node:
        case Comb():
            return Comb(node.base, *(copied(part) for part in (node.factor, node.terms, node.weights)))
        case ast.AST():
            return type(node)(**{field: copied(getattr(node, field)) for field in node._fields if hasattr(node, field)})
        case list() | tuple():
            return type(node)(map(copied, node))
    return node


@dataclass(frozen=True)
class Text:
    """A parsed step. rows: {name: "state", "stage", "param" or "jacobian"}; common: numbers of all members; other names are one a member.

    does: names of functions that become Do; watches: those of events and laws. logical: numbers that are truths although no comparison says
    so. by_state: the absolute tolerance is a row of the state and no number.
    """

    source: str
    by_state: bool = False

    @cached_property
    def _body(self) -> list[ast.stmt]:
        return list(parse(self.source).body)

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The phases and the named expressions of the text."""
        return {f.name: f for f in self._body if isinstance(f, ast.FunctionDef)}

    def _constant(self, wanted: str) -> Any:
        for s in self._body:
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name) and s.targets[0].id == wanted:
                return ast.literal_eval(s.value)
        raise KeyError(wanted)

    @cached_property
    def rows(self) -> dict[str, str]:
        return {**self._constant("ROWS"), **({"atol": "state"} if self.by_state else {})}

    @cached_property
    def common(self) -> tuple[str, ...]:
        return tuple(x for x in self._constant("COMMON") if x not in self.rows)

    @cached_property
    def does(self) -> frozenset[str]:
        return self.watches | {*self._constant("DOES")}

    @cached_property
    def watches(self) -> frozenset[str]:
        return frozenset(self._constant("WATCHES"))

    @cached_property
    def logical(self) -> frozenset[str]:
        return frozenset(self._constant("LOGICAL"))


class _Put(ast.NodeTransformer):
    """An expression with arguments in place of names."""

    def __init__(self, arguments: Mapping[str, ast.expr]) -> None:
        self.arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copied(self.arguments.get(node.id, node))


class Fold(ast.NodeTransformer):
    """Puts constants and named expressions in place, and recognises combinations of stages."""

    def __init__(self, text: Text, known: dict[str, Any], weights: Callable[[str], list[tuple[int, ast.expr]]] | None) -> None:
        self.text, self.known, self.weights = text, known, weights

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Tuple | Comb) and self._is_known(node):
            value = self.value(node)
            if isinstance(value, bool | int | float):
                return ast.Constant(value)
        return super().visit(node)

    def _is_known(self, node: ast.expr) -> bool:
        """Whether an expression has names, and all of them are constants."""
        names = False
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                names = True
                if inner.id not in self.known:
                    return False
        return names

    def value(self, node: ast.expr) -> Any:
        """The value of an expression of constants. The text is ours: nothing that a user writes comes here."""
        code = compile(ast.Expression(ast.fix_missing_locations(copied(node))), "text of a step", "eval")
        return eval(code, {"__builtins__": {}}, self.known)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("n") if node.id == "N" else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        if node.func.id in self.text.functions:
            function = self.text.functions[node.func.id]
            arguments = dict(zip((a.arg for a in function.args.args), node.args, strict=True))
            result = function.body[-1]
            assert isinstance(result, ast.Return) and result.value is not None
            folded: ast.expr = self.visit(_Put(arguments).visit(copied(result.value)))
            match folded:
                case ast.Call(func=ast.Name(id="sum_of")):
                    folded.keywords = [ast.keyword(node.func.id, self.visit(copied(a))) for a in node.args]
            return folded
        if node.func.id == "dot":
            return self._dot(node.args[0])
        return self.generic_visit(node)  # type: ignore[return-value]

    def _dot(self, which: ast.expr) -> Comb:
        """dot(weights, k): a combination without base and factor."""
        if isinstance(which, ast.Call):  # weights(theta), of the interpolant
            return Comb(terms=self.weights(ast.unparse(which.args[0]))) if self.weights else Comb(weights=which)
        ids = {n.id for n in ast.walk(which) if isinstance(n, ast.Name)}
        if not ids <= self.known.keys():
            return Comb(weights=which)
        return Comb(terms=[(j, ast.Constant(float(w))) for j, w in enumerate(self.value(which)) if w != 0.0])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        comb, left = node.right, node.left
        if isinstance(comb, Comb) and isinstance(node.op, ast.Mult) and comb.factor is None:
            return Comb("", left, comb.terms, comb.weights)
        if isinstance(comb, Comb) and isinstance(node.op, ast.Add) and isinstance(left, ast.Name) and left.id in self.text.rows:
            return left if not comb.terms and comb.weights is None else Comb(left.id, comb.factor, comb.terms, comb.weights)
        return node

    # here and in visit_IfExp: what is not taken is not visited, for it may name rows that are not there
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """A known operand decides, or is left out."""
        decides, values = isinstance(node.op, ast.Or), list[ast.expr]()
        for value in map(self.visit, node.values):
            if not isinstance(value, ast.Constant):
                values.append(value)
            elif value.value is decides:
                return ast.Constant(decides)
        return ast.Constant(not decides) if not values else ast.BoolOp(node.op, values) if len(values) > 1 else values[0]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))


class Reader:
    """The statements of a text with these constants known; the others stay names, and loops over them stay loops.

    weights: the interpolant's weights (j, w_j) for the text of theta; None: they are read from a table when run.
    logical: the numbers that are truths, as they are met.
    """

    def __init__(self, text: Text, known: Known, weights: Callable[[str], list[tuple[int, ast.expr]]] | None = None) -> None:
        self.text, self.known = text, dict(known)
        self.logical = set(text.logical)
        self._fold, self._sums = Fold(text, self.known, weights), 0

    def read(self, *phases: str) -> list[Statement]:
        """The statements of these functions of the text, one after another."""
        return [s for phase in phases for s in self._block(copied(self.text.functions[phase].body))]

    def _block(self, body: Iterable[ast.stmt]) -> list[Statement]:
        """The statements of these nodes, which are used up: folding changes them."""
        return [s for node in body for s in self._statement(node)]

    def _scalar(self, e: ast.expr, before: list[Statement]) -> ast.expr:
        """A folded scalar expression; its sums become statements before it."""
        reader = self

        class Sums(ast.NodeTransformer):
            def visit_Call(self, node: ast.Call) -> ast.expr:
                match self.generic_visit(node):
                    case ast.Call(func=ast.Name(id="sum_of"), args=[value], keywords=words):
                        reader._sums += 1
                        before.append(Sum(f"sum{reader._sums}", value, str(words[0].arg) if words else "", [w.value for w in words]))
                        return ast.Name(f"sum{reader._sums}")
                return node

        return Sums().visit(self._fold.visit(e))

    def _statement(self, node: ast.stmt) -> list[Statement]:
        before: list[Statement] = []
        match node:
            case ast.For(target=ast.Name(id=index), iter=ast.Call(args=ends), body=body):
                return self._stages(index, ends, body)
            case ast.If(test=test, body=yes, orelse=no):
                test = self._scalar(test, before)
                if isinstance(test, ast.Constant):
                    return self._block(yes if test.value else no)
                return [*before, If(test, self._block(yes), self._block(no))]
            case ast.While(test=test, body=body):
                return [While(self._scalar(test, before), self._block(body))]
            case ast.Expr(value=ast.Constant()):  # a docstring
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id="take"), args=[row, source, ast.Name(id=when)])):
                return [Take(self._row(row), self._row(source), when)]
            case ast.Expr(value=ast.Call(func=ast.Name(id="swap"), args=[ast.Name(id=row), ast.Name(id=other)])):
                return [Swap(row, other)]
            case ast.Expr(value=ast.Call(func=ast.Name(id="out"), args=[ast.Name(id=place), value])):
                return [Out(place, self._fold.visit(value))]
            case ast.Expr(value=ast.Call(func=ast.Name(id=what), args=arguments)) if what in self.text.does:
                return [Do([], what, [self._fold.visit(a) for a in arguments])]
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id="right"), args=[time, state, *keep])):
                left = keep[0].id if keep and isinstance(keep[0], ast.Name) else ""
                return [Right(self._row(target), self._fold.visit(time), self._fold.visit(state), left)]
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=what), args=arguments)) if what in self.text.does:
                results = target.elts if isinstance(target, ast.Tuple) else [target]
                rows = [row for t in results for row in self._rows(t)]
                return [Do(rows, what, [self._fold.visit(a) for a in arguments])]
            case ast.Assign(targets=[target], value=value) if isinstance(target, ast.Subscript) or ast.unparse(target) in self.text.rows:
                return [Each(self._row(target), self._fold.visit(value))]
            case ast.Assign(targets=[target], value=value):
                names = [ast.unparse(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
                return self._let(names, value)
        raise ValueError(f"no statement of a step: {ast.unparse(node)}")

    def _let(self, names: list[str], value: ast.expr) -> list[Statement]:
        before: list[Statement] = []
        value = self._scalar(value, before)
        if isinstance(value, ast.Tuple):
            return [*before, *(Let([a], v) for a, v in zip(names, value.elts, strict=True))]
        if _is_logical(value, self.logical):
            self.logical |= set(names)
        return [*before, Let(names, value)]

    def _stages(self, index: str, ends: Sequence[ast.expr], body: list[ast.stmt]) -> list[Statement]:
        first, last = (self._fold.visit(copied(e)) for e in ends)
        if not (isinstance(first, ast.Constant) and isinstance(last, ast.Constant)):
            return [Stages(index, first, last, self._block(body))]
        out: list[Statement] = []
        for s in range(int(str(first.value)), int(str(last.value)) + 1):
            self.known[index] = s  # so A[s] and C[s] are numbers in this round
            out += self._block(copied(body))
        self.known.pop(index, None)
        return out

    def _rows(self, e: ast.expr) -> list[Row]:
        """The row, or all stages between the first and the last, where they are known."""
        if isinstance(e, ast.Name) and self.text.rows.get(e.id) == "stage":
            return [(e.id, j) for j in range(1, self.known.get("LAST", 1))]
        return [self._row(e)]

    def _row(self, e: ast.expr) -> Row:
        e = self._fold.visit(e)
        if isinstance(e, ast.Subscript):
            return stage_of(e)
        assert isinstance(e, ast.Name)
        return e.id


def stage_of(e: ast.Subscript) -> StageRow:
    """The row k[3] as ("k", 3), k[s] of a method that is not known as ("k", "s")."""
    return ast.unparse(e.value), int(str(e.slice.value)) if isinstance(e.slice, ast.Constant) else ast.unparse(e.slice)


def _is_logical(e: ast.expr, logical: Collection[str]) -> bool:
    match e:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.Name(id=other):
            return other in logical
        case ast.IfExp(body=yes, orelse=no):
            return _is_logical(yes, logical) and _is_logical(no, logical)
    return False


def names_in(e: ast.expr) -> set[Row]:
    """What an expression reads: rows and numbers by name, a stage as ("k", j).

    What is common to all members is among them, and n, the number of components: which names are arguments is the target's choice.
    """
    out: set[Row] = set()
    for node in ast.walk(e):
        match node:
            case Comb():  # its base and stages are no nodes of the tree
                out |= {("k", j) for j, _ in node.terms} | ({node.base} if node.base else set())
                out |= {x for _, w in node.terms for x in names_in(w)}
            case ast.Subscript():
                out.add(stage_of(node))
            case ast.Name(id=other):
                out.add(other)
    called = {n.func.id for n in ast.walk(e) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return out - called - {"k", "inf", "nan"}  # the last two are no rows and no numbers


def reads_writes(s: Statement) -> tuple[set[Row], set[Row]]:
    """What a statement reads, and what it surely writes: a branch may not be taken."""
    match s:
        case Let(names, value):
            return names_in(value), set(names)
        case Sum(total, value):
            return names_in(value), {total}
        case Right(row, time, state, keep):
            return names_in(time) | names_in(state) | {"p"}, {row} | ({keep} if keep else set())
        case Each(row, value):
            return names_in(value), {row}
        case Take(row, source, when):
            return {row, source, when}, {row}
        case Swap(row, other):
            return {row, other}, {row, other}
        case Out(place, value):
            return names_in(value) | {place}, set()
        case Do(names, _, arguments):
            return set().union({"p"}, *(names_in(a) for a in arguments)), set(names)
        case If(test, yes, no):
            (reads, writes), (others, other_writes) = flow(yes), flow(no)
            return names_in(test) | reads | others, writes & other_writes
        case While(test, body) | Stages(_, _, test, body):
            return names_in(test) | exposed(body), set()
    raise TypeError(s)


def flat(statements: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those of branches and loops too."""
    for s in statements:
        yield s
        match s:
            case If(_, yes, no):
                yield from flat([*yes, *no])
            case While(_, body) | Stages(_, _, _, body):
                yield from flat(body)


def flow(statements: Iterable[Statement]) -> tuple[set[Row], set[Row]]:
    """What statements read before they write it, and what they write whatever happens."""
    out, ready = set[Row](), set[Row]()
    for s in statements:
        reads, writes = reads_writes(s)
        out |= reads - ready
        ready |= writes
    return out, ready


def exposed(statements: Iterable[Statement]) -> set[Row]:
    """What statements read before they write it: what they need from memory."""
    return flow(statements)[0]


def written(statements: Iterable[Statement]) -> set[Row]:
    """All that statements write, in branches too."""
    return set[Row]().union(*(reads_writes(s)[1] for s in flat(statements)))
