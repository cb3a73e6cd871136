"""Straight-line text taken apart into single operations, and the derivative of each by what it reads.

x1 = exp(y0*y0) - p0  ->  j0 = y0*y0, j1 = exp(j0), j2 = j1 - p0;  d j0 = (y0 + y0) d y0, d j1 = j1 d j0, d j2 = d j1
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt

from odesim.codegen.unrolled.formulas import Formulas
from odesim.errors import CodegenError

Slopes = dict[str, str]
"""{name read: d operation / d that, as a name or a number}"""
Guard = tuple[tuple[str, bool], ...]
"""The conditions, and how each turned out, under which a value is looked at."""

MOST_WAYS = 8


class Operations:
    """Lines of single operations, each text once; numbers are folded, and nothing is multiplied by one."""

    def __init__(self, letter: str) -> None:
        self.lines: dict[str, str] = {}
        self._letter, self._known = letter, dict[str, str]()

    def name(self, text: str, fresh: bool = False) -> str:
        """The name of what text computes."""
        found = None if fresh else self._known.get(text)
        if found is None:
            found = f"{self._letter}{len(self.lines)}"
            self.lines[found] = text
            self._known.setdefault(text, found)
        return found

    def times(self, a: str, b: str) -> str:
        """a*b."""
        if is_number(a) and is_number(b):
            return repr(float(a) * float(b))
        for x, y in ((a, b), (b, a)):
            if is_number(x) and abs(float(x)) == 1.0:
                return y if float(x) > 0 else self.name(f"-{y}")
        return self.name(f"{a} * {b}")

    def plus(self, a: str, b: str) -> str:
        """a + b."""
        if is_number(a) and is_number(b):
            return repr(float(a) + float(b))
        return self.name(f"{a} + {b}" if not b.startswith("-") else f"{a} - {b[1:]}")

    def part(self, used: Sequence[str]) -> list[str]:
        """The lines that these names need, in order."""
        wanted, out = set(used), []
        for name, text in reversed(self.lines.items()):
            if name in wanted:
                wanted.update(names_in(text))
                out.append(f"{name} = {text}")
        return out[::-1]


def is_number(text: str) -> bool:
    """Whether text is a number, not a name."""
    try:
        float(text)
    except ValueError:
        return False
    return text not in ("nan", "inf")


def names_in(text: str) -> set[str]:
    """The names that an expression reads."""
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


class Flat:
    """The operations of a right-hand side in text, and in `slopes` how each depends on the states y0, y1, ... and on t.

    outputs: the derivatives of the states, names or numbers.
    """

    def __init__(self, formulas: Formulas) -> None:
        self.text = Operations("j")
        self.slopes: dict[str, Slopes] = {}
        self._env: dict[str, str] = {}
        self._trees: dict[str, ast.expr] = {}
        self._shifts: set[str] = set()
        self._guards: dict[str, list[Guard]] = {}
        for line in formulas.lines:
            name, _, text = line.partition(" = ")
            tree = ast.parse(text, mode="eval").body
            self._env[name] = self._atom(tree, name in formulas.shifts)
        self.outputs = tuple(self._atom(ast.parse(text, mode="eval").body) for text in formulas.outputs)
        self._guard()
        self._active = {"t", *(f"y{k}" for k in range(formulas.states))}
        for name, tree in list(self._trees.items()):
            slopes = {} if name in self._shifts else self._derive(name, tree)
            if slopes:
                self.slopes[name] = slopes
                self._active.add(name)

    # -- single operations

    def _atom(self, node: ast.expr, shift: bool = False) -> str:
        """The name or the number that stands for an expression."""
        match node:
            case ast.Constant(value=int() | float() as x):
                return repr(float(x))
            case ast.Name(id=name):
                return self._env.get(name, name)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as x)):
                return repr(-float(x))
        tree = self._single(node)
        name = self.text.name(ast.unparse(tree), fresh=shift)
        if shift:
            self._shifts.add(name)
        self._trees.setdefault(name, tree)
        return name

    def _single(self, node: ast.expr) -> ast.expr:
        """The expression with atoms where it has parts."""

        def atom(part: ast.expr) -> ast.expr:
            if isinstance(part, ast.Constant) and isinstance(part.value, int):
                return part  # the exponent of powi
            return ast.parse(self._atom(part), mode="eval").body

        match node:
            case ast.BinOp(left=a, op=op, right=b):
                return ast.BinOp(atom(a), op, atom(b))
            case ast.UnaryOp(op=ast.USub() as op, operand=a):
                return ast.UnaryOp(op, atom(a))
            case ast.Compare(left=a, ops=ops, comparators=[b]):
                return ast.Compare(atom(a), ops, [atom(b)])
            case ast.BoolOp(op=op, values=parts):
                return ast.BoolOp(op, [atom(p) for p in parts])
            case ast.IfExp(test=test, body=a, orelse=b):
                return ast.IfExp(atom(test), atom(a), atom(b))
            case ast.Call(func=ast.Name() as function, args=args):
                return ast.Call(function, [atom(a) for a in args], [])
        raise CodegenError(f"no derivative of: {ast.unparse(node)[:60]}")

    def _guard(self) -> None:
        """Under which conditions each operation is looked at, a Guard for each way that leads to it."""
        for name in self.outputs:
            self._guards.setdefault(name, []).append(())
        for name, tree in reversed(self._trees.items()):
            ways = self._guards[name] = shortest(self._guards.get(name, [()]))
            choice = ast.unparse(tree.test) if isinstance(tree, ast.IfExp) else ""
            for part in ast.iter_child_nodes(tree):
                own = ways
                if isinstance(tree, ast.IfExp):
                    if part is tree.test:
                        continue
                    own = [(*way, (choice, part is tree.body)) for way in ways]
                for read in names_in(ast.unparse(part)) if isinstance(part, ast.expr) else ():
                    self._guards.setdefault(read, []).extend(own)

    # -- derivatives

    def _derive(self, name: str, tree: ast.expr) -> Slopes:
        """The slopes of an operation: 0 where it stands in the branch that was not taken, and could be infinite there."""
        found: Slopes = {}
        for part, slope in self._rules(name, tree):
            read = ast.unparse(part)
            if read not in self._active:
                continue
            value = slope()
            if not is_number(value):
                value = self._taken(value, self._guards.get(name, [()]))
            if not (is_number(value) and float(value) == 0.0):
                found[read] = self.text.plus(found[read], value) if read in found else value
        return {read: value for read, value in found.items() if not (is_number(value) and float(value) == 0.0)}

    def _taken(self, value: str, ways: Sequence[Guard]) -> str:
        """value where one of the ways is taken, else 0."""
        out = "0.0"
        for way in ways:
            chosen = value
            for condition, held in reversed(way):
                yes, no = (chosen, out) if held else (out, chosen)
                chosen = self.text.name(f"{yes} if {condition} else {no}")
            out = chosen
        return out

    def _rules(self, name: str, tree: ast.expr) -> Sequence[tuple[ast.expr, Callable[[], str]]]:
        """(part, how the operation changes with it) of an operation; a slope costs nothing until it is asked for."""
        text = self.text

        def choose(condition: str, yes: str, no: str) -> Callable[[], str]:
            return lambda: text.name(f"{yes} if {condition} else {no}")

        match tree:
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return (a, lambda: "1.0"), (b, lambda: "1.0")
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return (a, lambda: "1.0"), (b, lambda: "-1.0")
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return (a, lambda: ast.unparse(b)), (b, lambda: ast.unparse(a))
            case ast.BinOp(left=a, op=ast.Div(), right=b):

                def inverse() -> str:
                    return text.name(f"1.0 / {ast.unparse(b)}")

                return (a, inverse), (b, lambda: text.times(text.times("-1.0", name), inverse()))
            case ast.UnaryOp(operand=a):
                return ((a, lambda: "-1.0"),)
            case ast.IfExp(test=test, body=a, orelse=b):
                c = ast.unparse(test)
                return (a, choose(c, "1.0", "0.0")), (b, choose(c, "0.0", "1.0"))
            case ast.Call(func=ast.Name(id="powi"), args=[a, ast.Constant(value=int(n))]):
                below = f"powi({ast.unparse(a)}, {n - 1})"
                return ((a, lambda: "1.0" if n == 1 else text.times(repr(float(n)), text.name(below))),)
            case ast.Call(func=ast.Name(id="pow"), args=[a, b]):
                x, y = ast.unparse(a), ast.unparse(b)
                less = repr(float(y) - 1.0) if is_number(y) else None

                def above() -> str:
                    """x, and 1 where it is 0 and its power too: 0*log(0) is 0."""
                    moves = text.name(f"{text.name(f'{name} != 0.0')} or {text.name(f'{x} > 0.0')}")
                    return text.name(f"{x} if {moves} else 1.0")

                return (
                    (a, lambda: text.times(y, text.name(f"pow({x}, {less or text.name(f'{y} - 1.0')})"))),
                    (b, lambda: text.times(name, text.name(f"log({above()})"))),
                )
            case ast.Call(func=ast.Name(id="maximum" | "minimum" as which), args=[a, b]):
                c = text.name(f"{ast.unparse(a)} {'>=' if which == 'maximum' else '<='} {ast.unparse(b)}")  # of equal ones the first
                return (a, choose(c, "1.0", "0.0")), (b, choose(c, "0.0", "1.0"))
            case ast.Call(func=ast.Name(id="atan2"), args=[a, b]):
                x, y = ast.unparse(a), ast.unparse(b)

                def square() -> str:
                    return text.name(f"{text.name(f'{x} * {x}')} + {text.name(f'{y} * {y}')}")

                return (a, lambda: text.name(f"{y} / {square()}")), (b, lambda: text.times("-1.0", text.name(f"{x} / {square()}")))
            case ast.Call(func=ast.Name(id=function), args=[a]) if function in RULES:
                return ((a, lambda: written(text, RULES[function], {"a": ast.unparse(a), "f": name})),)
            case ast.Compare() | ast.BoolOp():
                return ()
        raise CodegenError(f"no derivative of: {ast.unparse(tree)[:60]}")


RULES = {
    "exp": "f",
    "log": "1.0 / a",
    "log1p": "1.0 / (1.0 + a)",
    "expm1": "f + 1.0",
    "tanh": "1.0 - f*f",
    "erf": f"{2 / sqrt(pi)!r} * exp(-(a*a))",
    "sqrt": "0.5 / f",
    "sin": "cos(a)",
    "cos": "-sin(a)",
    "tan": "1.0 + f*f",
    "asin": "1.0 / sqrt(1.0 - a*a)",
    "acos": "-1.0 / sqrt(1.0 - a*a)",
    "atan": "1.0 / (1.0 + a*a)",
    "sinh": "cosh(a)",
    "cosh": "sinh(a)",
    "asinh": "1.0 / sqrt(a*a + 1.0)",
    "abs": "1.0 if a > 0.0 else (-1.0 if a < 0.0 else a)",
    "floor": "0.0",
}
"""df/da of f(a)."""


def written(text: Operations, rule: str, words: Mapping[str, str]) -> str:
    """The name of a rule's value, or its number."""

    def atom(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=x):
                return repr(x)
            case ast.Name(id=word):
                return words[word]
            case ast.UnaryOp(operand=ast.Constant(value=int() | float() as x)):
                return repr(-x)
            case ast.UnaryOp(operand=a):
                return text.times("-1.0", atom(a))
            case ast.BinOp(left=a, op=op, right=b):
                sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(op)]
                return text.name(f"{atom(a)} {sign} {atom(b)}")
            case ast.IfExp(test=ast.Compare() as test, body=a, orelse=b):
                return text.name(f"{atom(a)} if {words['a']} {ast.unparse(test).split(' ', 1)[1]} else {atom(b)}")
            case ast.Call(func=ast.Name(id=function), args=[a]):
                return text.name(f"{function}({atom(a)})")
        raise AssertionError(ast.unparse(node))

    return atom(ast.parse(rule, mode="eval").body)


def shortest(guards: Sequence[Guard]) -> list[Guard]:
    """Each of them once, without those that a shorter one includes; what more than MOST_WAYS have in common stands for them."""
    first: list[Guard] = []
    for guard in sorted(dict.fromkeys(guards), key=len):
        if not any(guard[: len(f)] == f for f in first):
            first.append(guard)
    return first if len(first) <= MOST_WAYS else [common(first)]


def common(guards: Sequence[Guard]) -> Guard:
    """The conditions that all of them begin with."""
    first, *rest = guards
    size = 0
    while size < len(first) and all(g[: size + 1] == first[: size + 1] for g in rest):
        size += 1
    return first[:size]
