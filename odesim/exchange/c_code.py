"""A System's right-hand side as one file of C11 that needs nothing but its standard library: plain loops, in the order of the Program.

Arrays lie row after row; the state is all states one after another. Sizes are constants of the file: with them all memory is known.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Symbol

from odesim.base.errors import CodegenError
from odesim.exchange.array_code import Defaults, check_few, header_lines
from odesim.ir.passes import lower
from odesim.ir.program import Program, Statement
from odesim.symbolic.indices import base_name
from odesim.symbolic.system import System
from odesim.targets.cuda_words import named
from odesim.targets.expressions import Printer, PythonText, Tree, whole
from odesim.targets.numpy_text import index_arrays

C_NAMES = {"abs": "fabs", "float": "(double)", "int": "(long)"}
STANDARD = frozenset(("exp", "log", "log1p", "expm1", "tanh", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh",
    "cosh", "asinh", "acosh", "atanh", "sqrt", "pow", "floor", "fabs"))  # fmt: skip
HELPERS = {
    "powi": """static double powi(double x, long n) {
    double y = 1.0;
    for (; n > 0; n /= 2, x *= x) if (n % 2) y *= x;
    return y;
}""",
    "maximum": "static double maximum(double a, double b) { return a > b || a != a ? a : b; }",
    "minimum": "static double minimum(double a, double b) { return a < b || a != a ? a : b; }",
    "sinc": "static double sinc(double x) { return x == 0.0 ? 1.0 : sin(x) / x; }",
    "wrap": "static long wrap(long i, long n) { return (i % n + n) % n; }",
    "clip": "static long clip(long i, long n) { return i < 0 ? 0 : i < n ? i : n - 1; }",
    "on_axis": "static int on_axis(long i, long n) { return i >= 0 && i < n; }",
    "invert": """/* x (n, n) = the inverse of a (n, n), which it destroys: Gauss and Jordan, partial pivoting; NaN where there is none */
static void invert(double *a, double *x, long n) {
    for (long i = 0; i < n * n; i++) x[i] = i % (n + 1) == 0;
    for (long k = 0; k < n; k++) {
        long best = k;
        for (long i = k + 1; i < n; i++) if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        for (long j = 0; j < n; j++) {
            double s = a[k * n + j]; a[k * n + j] = a[best * n + j]; a[best * n + j] = s;
            s = x[k * n + j]; x[k * n + j] = x[best * n + j]; x[best * n + j] = s;
        }
        const double d = a[k * n + k] == 0.0 ? NAN : 1.0 / a[k * n + k];
        for (long j = 0; j < n; j++) { a[k * n + j] *= d; x[k * n + j] *= d; }
        for (long i = 0; i < n; i++) if (i != k) {
            const double f = a[i * n + k];
            for (long j = 0; j < n; j++) { a[i * n + j] -= f * a[k * n + j]; x[i * n + j] -= f * x[k * n + j]; }
        }
    }
}""",
}
"""{function: its text}: what C's library lacks."""
WORDS = {
    ast.Add: " + ", ast.Sub: " - ", ast.Mult: "*", ast.Div: "/", ast.And: " && ", ast.Or: " || ",
    ast.Lt: " < ", ast.LtE: " <= ", ast.Gt: " > ", ast.GtE: " >= ", ast.Eq: " == ", ast.NotEq: " != ",
}  # fmt: skip


def flat(index: Sequence[str], shape: Sequence[str]) -> str:
    """The place in memory of an element of an array that lies row after row."""
    place = index[0]
    for i, n in zip(index[1:], shape[1:], strict=True):
        place = f"({place})*({n}) + {i}"
    return place


class CText(PythonText):
    """Trees as C. shapes: {array: its extents as text}."""

    def __init__(self, shapes: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.shapes = shapes

    def name(self, text: str) -> str:
        return named(text)

    def call(self, function: str, *arguments: str) -> str:
        if function == "float" and arguments[0] in ("'nan'", "'inf'"):
            return "NAN" if arguments[0] == "'nan'" else "INFINITY"
        word = C_NAMES.get(function, function)
        if word.startswith("("):
            return f"({word}({arguments[0]}))"
        if word not in STANDARD and word not in HELPERS:
            raise CodegenError(f"C has no {function}()")
        return super().call(word, *arguments)

    def read(self, array: Tree, index: Sequence[Tree]) -> str:
        assert isinstance(array, ast.Name)
        return f"{self(array)}[{flat([self(i) for i in index], self.shapes[array.id])}]"

    def _walk(self, e: Tree) -> tuple[str, int]:
        match e:
            case ast.IfExp(test=test, body=yes, orelse=no):
                return f"({self(test)} ? {self(yes)} : {self(no)})", 4
            case ast.BoolOp(op=op, values=parts):
                return WORDS[type(op)].join(f"({self(p)})" for p in parts), 0
        return super()._walk(e)


def c_code(system: System, defaults: Defaults) -> str:
    """The file. Raises CodegenError for a function that C lacks."""
    check_few(defaults)
    program = lower(system, defaults.sizes)
    body = _Body(system, program)
    lines = body.lines()
    used = {word for word in HELPERS if word in body.text.called} | ({"invert"} if body.inverts else set())
    counts = {name: int(np.size(v)) for name, v in defaults.initial.items()}
    head = ["/*", *(f"   {line}".rstrip().replace("*/", "* /") for line in header_lines(system, list(system.observables))), "*/", ""]
    head += ["#include <math.h>", "#include <string.h>", ""]
    head += [f"enum {{ {', '.join(f'{named(n)} = {k}' for n, k in defaults.sizes.items())} }};"] if defaults.sizes else []
    head += [
        f"enum {{ STATES = {sum(counts.values())} }}; /* {', '.join(f'{n}: {k}' for n, k in counts.items())}, one after another */",
        "",
    ]
    flat = np.concatenate([np.ravel(v) for v in defaults.initial.values()])
    head += [
        f"static const double initial[STATES] = {_values(flat)};",
        f"static const double span[2] = {{{defaults.t0!r}, {defaults.t1!r}}};",
    ]
    fields = [_field(p.name, defaults.params[p.name], p.name in body.indices) for p in system.params]
    head += [
        "",
        "typedef struct {",
        *(f"    {declared};" for declared, _ in fields),
        *(["    char none;"] if not fields else []),
        "} Parameters;",
    ]
    head += [
        "static const Parameters parameters = {",
        *(f"    {value}," for _, value in fields),
        *(["    0"] if not fields else []),
        "};",
        "",
    ]
    head += [*(HELPERS[word] + "\n" for word in HELPERS if word in used)]
    what = "the next state" if system.discrete else "its derivative by t"
    head += [f"/* rates_ (STATES,) of a state_ (STATES,) at t: {what} */"]
    head += ["void right_hand_side(double t, const double *state_, double *rates_, const Parameters *values_) {"]
    return "\n".join([*head, *(f"    {line}" for line in lines), "}", ""])


def _values(a: Any) -> str:
    return f"{{{', '.join(map(repr, np.ravel(a).tolist()))}}}"


def _field(name: str, value: Any, index: bool) -> tuple[str, str]:
    """The declaration and the value of a parameter."""
    kind, a = "long" if index else "double", np.asarray(value)
    numbers = a if index else a.astype(float)
    return (f"{kind} {named(name)}", repr(numbers.item())) if a.ndim == 0 else (f"{kind} {named(name)}[{a.size}]", _values(numbers))


class _Body:
    """The statements of a right-hand side as lines of C."""

    def __init__(self, system: System, program: Program) -> None:
        self.system, self.program, self.indices, self.inverts = system, program, index_arrays(program), False
        text = PythonText()
        shapes = {name: [text(whole(n)) for n in shape] for name, shape in system.shapes.items()}
        shapes |= {p.name: [text(whole(n)) for n in p.shape] for p in system.params}
        for s in program.statements():
            shapes[s.name] = [text(whole(program.extents[i])) for i in s.free]
        self.shapes, self.text = shapes, CText(shapes)
        self.printer = Printer({*program.sizes, *(system.size_names), *(i.name for i in program.extents)})

    def value(self, e: Any) -> str:
        return self.text(self.printer.tree(e))

    def lines(self) -> list[str]:
        """Names of the parts of the state, of its derivative and of temporaries; then each statement."""
        out: list[str] = []
        read = self.program.inputs()
        at = "0"
        for name, shape in self.system.shapes.items():
            state, rate = named(name), named(f"d_{name}")
            if name in read:
                out.append(f"const double *{state} = state_ + {at};" if shape else f"const double {state} = state_[{at}];")
            out.append(f"double *{rate} = rates_ + {at};" if shape else f"double {rate}, *{rate}_ = rates_ + {at};")
            at += " + " + ("*".join(f"({PythonText()(whole(n))})" for n in shape) or "1")
        for p in self.system.params:
            if p.name in read:
                kind = "long" if p.name in self.indices else "double"
                out.append(f"const {kind} {'*' if p.shape else ''}{named(p.name)} = values_->{named(p.name)};")
        for name in dict.fromkeys(s.name for s in self.program.statements() if s.name not in self.program.outputs):
            count = "*".join(f"({n})" for n in self.shapes[name])
            out.append(f"static _Thread_local double {named(name)}[{count}];" if count else f"double {named(name)};")
        for s in self.program.statements():
            out += self._statement(s)
        out += [f"*{named(n)}_ = {named(n)};" for n in self.program.outputs if not self.shapes[n]]
        return out

    def _statement(self, s: Statement) -> list[str]:
        free = list(s.free)
        target = self._element(s.name, free)
        match s.op:
            case "map":
                return self._loops(free, [f"{target} = {self.value(s.body)};"])
            case "sum" | "dot" | "max":
                assert s.bound is not None
                start, value = "-INFINITY" if s.op == "max" else "0.0", self.value(s.body)
                step = f"total_ += {value};"
                if s.op == "max":
                    step = f"const double v_ = {value}; if (v_ > total_ || v_ != v_) total_ = v_;"
                inner = [f"double total_ = {start};", *self._loops([s.bound], [step]), f"{target} = total_;"]
                return self._loops(free, inner) if free else ["{", *(f"    {line}" for line in inner), "}"]
            case "scatter":
                assert s.via is not None
                index = [self.text(self.printer.subscript(i)) for i in (s.via, *free[1:])]
                clear = f"memset({named(s.name)}, 0, sizeof(double)*{'*'.join(f'({n})' for n in self.shapes[s.name])});"
                add = f"{named(s.name)}[{flat(index, self.shapes[s.name])}] += {self.value(s.body)};"
                return [clear, *self._loops(list(s.loops), [add])]
            case "inverse":
                self.inverts = True
                (*batch, _, n), here = self.shapes[s.name], f"b_*({self.shapes[s.name][-1]})*({self.shapes[s.name][-1]})"
                count = "*".join(f"({m})" for m in batch) or "1"
                copy = f"double a_[({n})*({n})]; memcpy(a_, {named(base_name(s.body))} + {here}, sizeof a_);"
                return [f"for (long b_ = 0; b_ < {count}; b_++) {{", f"    {copy}", f"    invert(a_, {named(s.name)} + {here}, {n});", "}"]
            case "prefix" | "suffix":
                return self._partial(s, free)
        raise CodegenError(f"C has no form of {s.op}")

    def _partial(self, s: Statement, free: list[Symbol]) -> list[str]:
        """Sums up to each place of one axis, or from it on."""
        k = s.along
        assert k is not None
        n, others = self._extent(k), [i for i in free if i != k]
        head = f"for (long {named(k.name)} = 0; {named(k.name)} < {n}; {named(k.name)}++) {{"
        if s.op == "suffix":
            head = f"for (long {named(k.name)} = {n} - 1; {named(k.name)} >= 0; {named(k.name)}--) {{"
        inner = ["double total_ = 0.0;", head, f"    total_ += {self.value(s.body)};", f"    {self._element(s.name, free)} = total_;", "}"]
        return self._loops(others, inner) if others else ["{", *(f"    {line}" for line in inner), "}"]

    def _extent(self, i: Symbol) -> str:
        return PythonText()(whole(self.program.extents[i]))

    def _element(self, array: str, free: Sequence[Symbol]) -> str:
        return f"{named(array)}[{flat([named(i.name) for i in free], self.shapes[array])}]" if free else named(array)

    def _loops(self, indices: Sequence[Symbol], body: list[str]) -> list[str]:
        """Loops over indices, the last one innermost."""
        lines = body
        for i in reversed(indices):
            k = named(i.name)
            lines = [f"for (long {k} = 0; {k} < {self._extent(i)}; {k}++) {{", *(f"    {line}" for line in lines), "}"]
        return lines
