"""Expressions as trees: one walk over a sympy expression, with a subclass for what each language has; and trees as Python text.

A tree is Python's own syntax tree. What the walk decides, as the order of a sum and where it has brackets, is so the same for numba,
numpy, CUDA and straight lines, which all read the tree.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import isfinite
from typing import Any, TypeVar

import sympy as sp
from sympy import Indexed, KroneckerDelta, Symbol

from odesim.base.errors import CodegenError, shorten
from odesim.symbolic.functions import FUNCTIONS, LOWEST

Tree = ast.expr
Chain = list[tuple[ast.operator, Tree]]
"""Operands in a row, each with the sign before it: a - b + c."""
Part = TypeVar("Part")
SUMS, PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)
MOST = 64
"""Operands in a row: of more the text would be nested too deeply for a compiler, and they are grouped."""
TEST, SUM, PRODUCT, UNARY, ATOM = range(5)
"""How tightly a tree binds as text."""
WORDS = {
    ast.Add: " + ", ast.Sub: " - ", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: " // ", ast.Pow: "**", ast.And: " and ", ast.Or: " or ",
    ast.Lt: " < ", ast.LtE: " <= ", ast.Gt: " > ", ast.GtE: " >= ", ast.Eq: " == ", ast.NotEq: " != ",
}  # fmt: skip
RELATIONS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq, "Equality": ast.Eq, "Unequality": ast.NotEq,
}  # fmt: skip
REWRITTEN: dict[str, Callable[..., Any]] = {
    "Mod": lambda u, q: u - q * sp.floor(u / q, evaluate=False),
    "frac": lambda u: u - sp.floor(u, evaluate=False),
    # sympy writes |exp(x)| as exp(re(x)): elements of arrays may be complex to it, and all our symbols are real
    "re": lambda x: x,
    "im": lambda x: sp.Float(0),
}
"""{sympy class: the expression that stands for it}."""
ON_AXIS = {"Wrapped": "wrap", "Clipped": "clip", "Inside": "on_axis"}
"""{sympy class of a place on an axis: what is asked of it}."""


def name(text: str) -> ast.Name:
    """A variable."""
    return ast.Name(text)


def number(x: float) -> Tree:
    """A number, whole or real."""
    return ast.UnaryOp(ast.USub(), ast.Constant(-x)) if x < 0 else ast.Constant(x)


def call(function: str, *arguments: Tree) -> ast.Call:
    """A call of a function."""
    return ast.Call(ast.Name(function), list(arguments), [])


def element(array: str | Tree, *index: Tree) -> ast.Subscript:
    """An element of an array, or one of its rows."""
    return ast.Subscript(ast.Name(array) if isinstance(array, str) else array, index[0] if len(index) == 1 else ast.Tuple(list(index)))


def compared(a: Tree, sign: str, b: Tree) -> ast.Compare:
    """A comparison."""
    return ast.Compare(a, [RELATIONS[sign]()], [b])


def added(a: Tree, b: Tree) -> ast.BinOp:
    """a + b."""
    return ast.BinOp(a, ast.Add(), b)


def chain_of(e: Tree, sign: ast.operator, kinds: tuple[type[ast.operator], ...]) -> Chain:
    """The operands of a sum or product in a row; sign: before the first. Anything else is one operand."""
    # a product in a product has no brackets: a*(b*c) is computed as (a*b)*c, in the order in which it is read
    out: Chain = []
    while isinstance(e, ast.BinOp) and isinstance(e.op, kinds):
        out.append((e.op, e.right))
        e = e.left
    return [(sign, e), *reversed(out)]


def chained(chain: Iterable[tuple[ast.operator, Tree]]) -> Tree:
    """Operands in a row as a tree, from left to right; a minus before the first is that of its first factor."""
    (sign, first), *others = chain
    start = negated(first) if isinstance(sign, ast.Sub) else first
    return reduce(lambda a, part: ast.BinOp(a, part[0], part[1]), others, start)


def negated(e: Tree) -> Tree:
    """-e, where the minus binds more than the products of e."""
    if isinstance(e, ast.BinOp) and isinstance(e.op, PRODUCTS):
        return ast.BinOp(negated(e.left), e.op, e.right)
    return ast.UnaryOp(ast.USub(), e)


def in_groups(parts: list[Part], join: Callable[[list[Part]], Tree], again: Callable[[Tree], Part]) -> Tree:
    """join(parts); of more than MOST parts the join of the joins of groups of them, in order, each made a part by `again`."""
    while len(parts) > MOST:
        parts = [again(join(parts[k : k + MOST])) for k in range(0, len(parts), MOST)]
    return join(parts)


def whole(e: Any) -> Tree:
    """An extent or another polynomial of whole numbers."""
    e = sp.sympify(e)
    if e.is_Integer:
        return number(int(e))
    if isinstance(e, Symbol):
        return name(e.name)
    if e.is_Add:
        terms = [(t.could_extract_minus_sign(), t) for t in e.as_ordered_terms()]
        return chained([(ast.Sub(), whole(-t)) if minus else (ast.Add(), whole(t)) for minus, t in terms])
    if e.is_Mul and e.could_extract_minus_sign():
        return negated(whole(-e))
    if e.is_Mul:
        return chained([(ast.Mult(), whole(f)) for f in e.as_ordered_factors()])
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return ast.BinOp(whole(e.base), ast.Pow(), number(int(e.exp)))
    raise CodegenError(f"{e} is no polynomial of sizes")


class PythonText:
    """Trees as Python text. called: the functions in all that was written, by their names."""

    def __init__(self) -> None:
        self.called: set[str] = set()

    def name(self, text: str) -> str:
        """The text of a variable."""
        return text

    def __call__(self, e: Tree, above: int = TEST) -> str:
        """The text of e, in brackets where it binds less than `above`."""
        text, binds = self._walk(e)
        return f"({text})" if binds < above else text

    def call(self, function: str, *arguments: str) -> str:
        """The text of a call."""
        self.called.add(function)
        return f"{function}({', '.join(arguments)})"

    def read(self, array: Tree, index: Sequence[Tree]) -> str:
        """The text of an element."""
        return f"{self(array)}[{', '.join(map(self, index))}]"

    def _walk(self, e: Tree) -> tuple[str, int]:
        match e:
            case ast.Name(id=text):
                return self.name(text), ATOM
            case ast.Constant(value=x):
                return repr(x), ATOM
            case ast.BinOp(left=a, op=op, right=b):
                level = SUM if isinstance(op, SUMS) else PRODUCT
                # the right side of a quotient stands alone
                after = ATOM if isinstance(op, ast.Div) else level + 1
                return f"{self(a, level)}{WORDS[type(op)]}{self(b, after)}", level
            case ast.UnaryOp(operand=a):
                return f"-{self(a, UNARY)}", UNARY
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self.call(function, *map(self, arguments)), ATOM
            case ast.Subscript(value=array, slice=ast.Tuple(elts=index)):
                return self.read(array, index), ATOM
            case ast.Subscript(value=array, slice=index):
                return self.read(array, [index]), ATOM
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                return f"{self(a, PRODUCT)}{WORDS[type(op)]}{self(b, PRODUCT)}", TEST
            case ast.BoolOp(op=op, values=parts):
                return WORDS[type(op)].join(f"({self(p)})" for p in parts), TEST
            case ast.IfExp(test=test, body=yes, orelse=no):
                return f"({self(yes)} if {self(test)} else {self(no)})", ATOM
        raise TypeError(ast.dump(e))


class Printer:
    """The walk over expressions on numbers, for compiled code. integers: names of the symbols (indices, sizes) that are integers."""

    def __init__(self, integers: set[str]):
        self.integers = integers

    def text(self, e: Any) -> str:
        """The tree of e as Python text."""
        return PythonText()(self.tree(e))

    def tree(self, e: Any) -> Tree:
        """e as a tree. Raises CodegenError where no backend can compute e."""
        e = sp.sympify(e)
        kind = type(e).__name__
        if kind in REWRITTEN:
            return self.tree(REWRITTEN[kind](*e.args))
        if kind in ON_AXIS:
            return self.on_axis(ON_AXIS[kind], *self._place(e))
        simple: Callable[[Any], Tree] | None = getattr(self, f"_{kind}", None)
        if simple is not None:
            return simple(e)
        if e.is_Integer or e.is_Rational or e.is_Float or e.is_NumberSymbol:
            return self.number(float(e))
        if isinstance(e, Symbol):
            return self.whole(name(e.name)) if e.name in self.integers else name(e.name)
        if isinstance(e, sp.core.relational.Relational):
            sign = kind if kind in RELATIONS else e.rel_op
            return compared(self.tree(e.lhs), sign, self.tree(e.rhs))
        function = FUNCTIONS.get(kind)
        if function is None:
            raise CodegenError(f"{kind} in {e} has no generated code; known are {', '.join(sorted(FUNCTIONS))} and powers")
        return self.call(function, *map(self.tree, e.args))

    def number(self, x: float) -> Tree:
        """A real number."""
        if not isfinite(x):
            raise CodegenError(f"a number in an expression overflows float64: {x}")
        return number(x)

    def _Add(self, e: Any) -> Tree:
        parts: list[Chain] = []
        for term in e.args:
            minus = term.could_extract_minus_sign() and (term.is_Number or (term.is_Mul and term.args[0].is_Number))
            parts.append([(ast.Sub(), self.tree(-term))] if minus else chain_of(self.tree(term), ast.Add(), SUMS))
        parts.sort(key=lambda part: isinstance(part[0][0], ast.Sub))  # a leading sum needs no sign
        return in_groups(parts, _joined, lambda total: [(ast.Add(), total)])

    def _Mul(self, e: Any) -> Tree:
        above, below, minus = [], [], False
        for f in e.args:
            if f == -1:
                minus = True
            elif f.is_Pow and f.args[1].could_extract_minus_sign():
                below.append(sp.Pow(f.args[0], -f.args[1]))
            else:
                above.append(f)
        top = self._product([self.tree(f) for f in above]) if above else number(1.0)
        top = negated(top) if minus else top
        return ast.BinOp(top, ast.Div(), self._product([self.tree(f) for f in below])) if below else top

    def _product(self, factors: list[Tree]) -> Tree:
        """The product of these factors."""
        return in_groups([chain_of(f, ast.Mult(), PRODUCTS) for f in factors], _joined, lambda total: [(ast.Mult(), total)])

    def _Pow(self, e: Any) -> Tree:
        base, n = e.args
        if n.could_extract_minus_sign():
            return ast.BinOp(number(1.0), ast.Div(), self.tree(sp.Pow(base, -n)))
        # products, as design has it: x**2 by pow would cost a logarithm and an exponential, and two ulp
        if n.is_Integer:
            if n >= 1 << 63:
                raise CodegenError(f"the exponent in {shorten(str(e), 60)} is above 2^63, and has no generated code")
            # written out up to 4: a call of powi has a loop that the vectoriser must first unroll
            if n <= 4 and (base.is_Symbol or isinstance(base, Indexed)):
                return chained([(ast.Mult(), self.tree(base))] * int(n))
            return self.call("powi", self.tree(base), number(int(n)))
        if n == sp.Rational(1, 2):
            return self.call("sqrt", self.tree(base))
        if n.is_Rational and n.q == 2:
            return self.tree(sp.Mul(sp.Pow(base, n - sp.Rational(1, 2)), sp.sqrt(base), evaluate=False))
        return self.call("pow", self.tree(base), self.tree(n))

    def _Piecewise(self, e: Any) -> Tree:
        *cases, (last, otherwise) = e.args
        if otherwise is not sp.true:
            cases, last = [*cases, (last, otherwise)], sp.nan
        return self._cases([(self.tree(value), self.tree(condition)) for value, condition in cases], self.tree(last))

    def _cases(self, cases: list[tuple[Tree, Tree]], last: Tree) -> Tree:
        """A choice among (value, condition); of more than MOST cases, first between the first half and the others."""
        if len(cases) > MOST:
            first, others = cases[: len(cases) // 2], cases[len(cases) // 2 :]
            some = self.either([condition for _, condition in first])
            return self.choice(some, self._cases(first[:-1], first[-1][0]), self._cases(others, last))
        return reduce(lambda no, case: self.choice(case[1], case[0], no), reversed(cases), last)

    def _KroneckerDelta(self, e: KroneckerDelta) -> Tree:
        a, b = map(self.subscript, e.args)
        return self.choice(compared(a, "==", b), number(1.0), number(0.0))

    def _And(self, e: Any) -> Tree:
        return self.both(self._sorted(e.args))

    def _Or(self, e: Any) -> Tree:
        return self.either(self._sorted(e.args))

    def _Max(self, e: Any) -> Tree:
        return self._fold("maximum", e)

    def _Min(self, e: Any) -> Tree:
        return self._fold("minimum", e)

    def _fold(self, function: str, e: Any) -> Tree:
        return in_groups(self._sorted(e.args), lambda parts: reduce(lambda a, b: self.call(function, a, b), parts), lambda part: part)

    def _sorted(self, parts: Iterable[Any]) -> list[Tree]:
        """The trees of these expressions in the order of their texts: sympy's own order depends on names that it hashes."""
        return sorted(map(self.tree, parts), key=PythonText())

    def _sign(self, e: Any) -> Tree:
        return self._steps(self.tree(e.args[0]), number(1.0), number(-1.0), number(0.0))

    def _steps(self, x: Tree, above: Tree, below: Tree, at: Tree) -> Tree:
        """A value above 0, below 0 and at 0; NaN gives NaN."""
        zero, cases = number(0.0), ((">", above), ("<", below), ("==", at))
        return reduce(lambda no, case: self.choice(compared(x, case[0], zero), case[1], no), reversed(cases), self.constant("nan"))

    def _Heaviside(self, e: Any) -> Tree:
        return self._steps(self.tree(e.args[0]), number(1.0), number(0.0), self.tree(e.args[1]))

    def _Weighted(self, e: Any) -> Tree:
        # a product, not a choice, so that its slope by the weight is exp(x) at 0 too; exp(88) is finite in float32
        # the weight of a masked entry is 0 and its x may overflow; 0*inf would be NaN
        weight, x = self._unless_0(e, "<=", 88.0, 88.0)
        return ast.BinOp(weight, ast.Mult(), self.call("exp", x))

    def _XLogY(self, e: Any) -> Tree:
        # 0 log 0 is 0 here, as its limit is; scipy's xlogy says the same
        x, y = self._unless_0(e, ">", 0.0, 1.0)
        return ast.BinOp(x, ast.Mult(), self.call("log", y))

    def _Share(self, e: Any) -> Tree:
        x, y = self._unless_0(e, "!=", 0.0, 1.0)
        return ast.BinOp(x, ast.Div(), y)

    def _unless_0(self, e: Any, sign: str, limit: float, other: float) -> tuple[Tree, Tree]:
        """The arguments of e; in the place of the second another number where the first is 0 and the second is not `sign` the limit."""
        x, y = map(self.tree, e.args)
        fits = self.either([compared(x, "!=", number(0.0)), compared(y, sign, number(limit))])
        return x, self.choice(fits, y, number(other))

    def _Counted(self, e: Any) -> Tree:
        weight, x = map(self.tree, e.args)
        return self.choice(compared(weight, "==", number(0.0)), number(LOWEST), x)

    def _ceiling(self, e: Any) -> Tree:
        return negated(self.call("floor", self.tree(-e.args[0])))

    def _LambertW(self, e: Any) -> Tree:
        x, *branch = e.args
        return self.call("lambertw_lower" if branch == [-1] else "lambertw", self.tree(x))

    def _jn(self, e: Any) -> Tree:
        """The slope of sinc is all that compiled code has of the spherical Bessel functions."""
        n, x = e.args
        if n > 1:
            raise CodegenError(f"{e} is computed on whole arrays, not in compiled code: choose the backend numpy")
        return negated(self.call("sinc_slope", self.tree(x))) if n == 1 else self.call("sinc", self.tree(x))

    def _real(self, e: Any) -> Tree:
        return self.whole(self.element(e.args[0]))

    def _NaN(self, e: Any) -> Tree:
        return self.constant("nan")

    def _Indexed(self, e: Indexed) -> Tree:
        return self.element(e)

    def _Padded(self, e: Any) -> Tree:
        return self._place(e)[0]  # inside another neighbour, which sees to the ends

    def _UpTo(self, e: Any) -> Tree:
        a, b, c = e.args
        return compared(self.place(a), "<=", self._shifted(self.place(b), int(c)))

    def _place(self, e: Any) -> tuple[Tree, Tree]:
        """The place i + c and the length n of the axis."""
        i, c, n = e.args
        return self._shifted(self.place(i), int(c)), whole(n)

    @staticmethod
    def _shifted(place: Tree, c: int) -> Tree:
        return ast.BinOp(place, ast.Sub() if c < 0 else ast.Add(), number(abs(c))) if c else place

    def place(self, i: Any) -> Tree:
        """A place on an axis, a whole number."""
        return self.subscript(i)

    def on_axis(self, what: str, place: Tree, length: Tree) -> Tree:
        """wrap: the place on a ring. clip: the place on the axis that is nearest. on_axis: whether the place is on the axis."""
        return call(what, place, length)

    def subscript(self, i: Any) -> Tree:
        """An index: a loop variable, a number, a gathered element, a neighbour, or in a delta any expression."""
        if isinstance(i, Indexed):
            return self.element(i)
        return name(i.name) if isinstance(i, Symbol) else number(int(i)) if i.is_Integer else self.tree(i)

    def whole(self, e: Tree) -> Tree:
        """An integer, converted to a real number."""
        return call("float", e)

    def constant(self, word: str) -> Tree:
        """A constant, such as nan."""
        return call("float", ast.Constant(word))

    def call(self, function: str, *args: Tree) -> Tree:
        """A function call."""
        return call(function, *args)

    def choice(self, condition: Tree, yes: Tree, no: Tree) -> Tree:
        """A conditional expression."""
        return ast.IfExp(condition, yes, no)

    def both(self, parts: Sequence[Tree]) -> Tree:
        """A conjunction: all parts hold."""
        return ast.BoolOp(ast.And(), list(parts)) if len(parts) > 1 else parts[0]

    def either(self, parts: Sequence[Tree]) -> Tree:
        """A disjunction: one of the parts holds."""
        return ast.BoolOp(ast.Or(), list(parts)) if len(parts) > 1 else parts[0]

    def element(self, e: Indexed) -> Tree:
        """An array element."""
        return element(str(e.base.label), *map(self.subscript, e.indices))


def _joined(parts: Iterable[Chain]) -> Tree:
    return chained([operand for part in parts for operand in part])
