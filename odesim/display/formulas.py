"""Formulas as one line of text and as LaTeX, in the order in which people write them."""

from collections.abc import Mapping
from functools import cached_property
from itertools import count
from typing import Any

import sympy as sp
from sympy import Indexed, Symbol
from sympy.printing.conventions import split_super_sub
from sympy.printing.latex import LatexPrinter as SympyLatexPrinter
from sympy.printing.latex import greek_letters_set, modifier_dict

from odesim.display.naming import BINDING, Display, Entropy, LogSumExp, Slope, SoftmaxAt, plain
from odesim.symbolic.definition import Definition, GradientFlow, twin_state
from odesim.symbolic.indices import base_name
from odesim.symbolic.noise import terms_of
from odesim.symbolic.parts import Key
from odesim.symbolic.reductions import limit_latex, limit_text, unevaluated


# sympy orders terms and factors by its own keys; people write constants first, positive terms before negative ones and sums last.
def readable(e: Any, constants: frozenset[str] = frozenset()) -> Any:
    """e in the form to print, with sympy's own sums; print it with order="none". constants: names that stand first in a product.

    sum_j(log(sum_j(f[j])) - f[j])  ->  sum_j(log(sum_j'(f[j'])) - f[j])        -K + M  ->  M - K        sum_j(-f[j])  ->  -sum_j(f[j])
    """
    free = {s.name for s in e.free_symbols if isinstance(s, Symbol) and s.is_integer}
    return _arranged(_signed(_primed(e, frozenset(free))), constants)


def _primed(e: Any, taken: frozenset[str]) -> Any:
    """e with a name for each bound index that nothing around it has."""
    if isinstance(e, BINDING):
        body, limits, swap = e.function, [], dict[Any, Any]()
        for k, low, high in e.limits:
            j = Symbol(next(name for name in (k.name + "'" * n for n in count()) if name not in taken), integer=True, nonnegative=True)
            body, taken, swap = body.xreplace({k: j}), taken | {j.name}, {**swap, k: j}
            limits.append((j, low, high))
        limits = [(j, low.xreplace(swap), high.xreplace(swap)) for j, low, high in limits]
        return unevaluated(sp.Sum if isinstance(e, sp.Sum) else type(e), _primed(body, taken), limits)
    return e.func(*(_primed(a, taken) for a in e.args)) if e.args and not isinstance(e, Indexed) else e


def _signed(e: Any) -> Any:
    """e with minus signs before its sums, not behind them, where they would stand beside other signs.

    -sum_j(-f[j]) - sum_j(g[j])  ->  sum_j(f[j]) - sum_j(g[j])
    """
    if isinstance(e, Indexed) or not e.has(sp.Sum):
        return e
    if isinstance(e, BINDING):
        body = _signed(e.function)
        if isinstance(e, sp.Sum) and body.is_Mul and body.as_coeff_Mul()[0].is_negative:
            return -unevaluated(sp.Sum, -body, e.limits)
        return unevaluated(sp.Sum if isinstance(e, sp.Sum) else type(e), body, e.limits)
    parts = [_signed(a) for a in e.args]
    return e if all(a is b for a, b in zip(parts, e.args, strict=True)) else e.func(*parts)


def _arranged(e: Any, constants: frozenset[str]) -> Any:
    """e with its terms and factors in order, unevaluated."""
    if not e.args or isinstance(e, Indexed):
        return e
    if isinstance(e, BINDING):
        limits = [(k, _arranged(low, constants), _arranged(high, constants)) for k, low, high in e.limits]
        return unevaluated(type(e), _arranged(e.function, constants), limits)
    if e.is_Add:
        parts = sorted(e.as_ordered_terms(), key=lambda a: a.could_extract_minus_sign())
        if not all(a.as_coeff_Mul()[1].is_Symbol or a.is_Number for a in parts):  # 1 + exp(u), but K + 1
            parts.sort(key=lambda a: not (a.is_Number and a > 0))
        return sp.Add(*(_arranged(a, constants) for a in parts), evaluate=False)
    if e.is_Mul:
        number, rest = e.as_coeff_Mul()
        parts = sorted(rest.as_ordered_factors(), key=lambda a: _rank(a, constants))
        return sp.Mul(*([] if number == 1 else [number]), *(_arranged(a, constants) for a in parts), evaluate=False)
    if isinstance(e, sp.Eq) and _side(e.rhs) < _side(e.lhs):
        return sp.Eq(e.rhs, e.lhs, evaluate=False)
    parts = [_arranged(a, constants) for a in e.args]
    return e.func(*parts, evaluate=False) if isinstance(e, sp.Pow | sp.exp | sp.log | sp.Piecewise) else e.func(*parts)


def _side(e: Any) -> int:
    """The place in an equality: an index stands left of a size, both left of arrays' elements, numbers on the right."""
    if isinstance(e, Symbol) and e.is_integer:
        return int(bool(e.is_positive))
    return 3 if e.is_number else 2


def _rank(e: Any, constants: frozenset[str]) -> int:
    """The place of a factor: numbers, constants, arrays, brackets, functions, sums."""
    base = e.base if e.is_Pow and not isinstance(e, sp.exp) else e
    if base.is_Number:
        return 0
    if isinstance(base, sp.KroneckerDelta):
        return 1
    if isinstance(base, Symbol):
        return 2 if base.name in constants else 4
    if isinstance(base, Indexed):
        return 3 if str(base.base.label) in constants else 4
    if isinstance(base, sp.Sum | LogSumExp | Entropy):
        return 8
    return 5 if base.is_Add else 6 if isinstance(base, SoftmaxAt) else 7


LONG = 240
"""Characters of a formula, three lines of a terminal, above which a gradient is shown as one."""


class Formulas:
    """The formulas of a System as text and as LaTeX: named parts are printed as their names, without the shifts that cancel.

    latex: the printer of LaTeX.
    """

    def __init__(self, system: Definition):
        self.system, self.display = system, Display(system)
        self.constants = frozenset((*(p.name for p in system.params), *system.size_names))
        self._text, self._latex = (
            _Text({"order": "none", "full_prec": False}),
            LatexPrinter({"order": "none", "mul_symbol": r" \, "}),
        )

    def equations(self) -> dict[Key, Any]:
        """{state: right-hand side}, each with its names; gradients of a loss that has a name as such, where one is long."""
        return self._written | {key: -self.display.shown(rate) * Slope(self.display.loss, key) for key, rate in self._slopes.items()}

    def definitions(self) -> dict[Key, Any]:
        """{name: definition} of the names in what is shown."""
        return self.display.definitions(equations=len(self._slopes) < len(self.system.equations))

    @cached_property
    def noise(self) -> dict[Key, Any]:
        """{state: its noise}, where the increment of a channel B is called dB."""
        out: dict[Key, Any] = {}
        for term in terms_of(self.system):
            increment = twin_state(term.channel, f"d{base_name(term.channel)}")
            out[term.state] = out.get(term.state, 0) + self.display.shown(term.times(increment))
        return out

    @cached_property
    def _written(self) -> dict[Key, Any]:
        return {key: self.display.shown(e) for key, e in self.system.equations.items()}

    @cached_property
    def _slopes(self) -> Mapping[Key, Any]:
        """{state: rate} of the equations that are shown as gradients: none where all are short."""
        rates = self.system.equations.rates if isinstance(self.system.equations, GradientFlow) and self.display.loss else {}
        return rates if any(len(self.print_text(self._written[key])) > LONG for key in rates) else {}

    def text(self, e: Any) -> str:
        """An expression on one line: sum_l(f), max_l(f), softmax_l(f)."""
        return self.print_text(self.display.shown(e))

    def latex(self, e: Any) -> str:
        """An expression as LaTeX."""
        return self.print_latex(self.display.shown(e))

    def print_text(self, shown: Any) -> str:
        """A formula that has its names already, on one line."""
        return str(self._text.doprint(readable(shown, self.constants)))

    def print_latex(self, shown: Any) -> str:
        """A formula that has its names already, as LaTeX."""
        return str(self._latex.doprint(readable(shown, self.constants)))


def latex(system: Definition) -> str:
    """The equations as a LaTeX aligned block, with the definitions of the names in them."""
    formulas = Formulas(system)
    rows = [" &= ".join(equation_latex(formulas, key, e)) for key, e in formulas.equations().items()]
    rows += [f"{formulas.print_latex(key)} &= {formulas.print_latex(e)}" for key, e in formulas.definitions().items()]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def equation_latex(formulas: Formulas, key: Key, e: Any) -> tuple[str, str]:
    """The sides of an equation: of a state with noise those of d x = (f) dt + g dB."""
    noise = formulas.noise.get(key)
    if noise is None:
        return rate_latex(formulas, key, formulas.system.discrete), formulas.print_latex(e)
    drift = rf"\left({formulas.print_latex(e)}\right) \mathrm{{d}}t + " if e != 0 else ""
    return rf"\mathrm{{d}} {formulas.print_latex(key)}", drift + formulas.print_latex(noise)


def rate_latex(formulas: Formulas, key: Key, discrete: bool) -> str:
    """The derivative of a state by the time; in discrete time the next state."""
    return rf"{formulas.print_latex(key)}(t + 1)" if discrete else rf"\frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}}\, {formulas.print_latex(key)}"


def equations_text(system: Definition) -> str:
    """The equations as plain text, one per line."""
    formulas, left = Formulas(system), "{}(t + 1)" if system.discrete else "d{}/dt"
    lines = []
    for key, e in formulas.equations().items():
        name, right, noise = formulas.print_text(key), formulas.print_text(e), formulas.noise.get(key)
        drift = f"({right}) dt + " if e != 0 else ""
        lines.append(f"{left.format(name)} = {right}" if noise is None else f"d{name} = {drift}{formulas.print_text(noise)}")
    return "\n".join(lines)


def definitions_text(system: Definition) -> str:
    """The definitions of the names in the equations and laws, one per line."""
    formulas = Formulas(system)
    return "\n".join(f"{formulas.print_text(key)} = {formulas.print_text(e)}" for key, e in formulas.definitions().items())


def text_of(e: Any) -> str:
    """An expression on one line: sum_l(f), max_l(f), without the shifts that cancel and without names."""
    return str(_Text({"order": "none", "full_prec": False}).doprint(readable(plain(sp.sympify(e)))))


class _Text(sp.printing.str.StrPrinter):  # type: ignore[misc]
    """A printer of expressions on one line, with short sums and powers."""

    def _reduction(self, name: str, e: Any, *arguments: Any) -> str:
        indices = ",".join(map(limit_text, e.limits))
        return f"{name}_{indices}({', '.join(map(self._print, arguments))})"

    def _print_Sum(self, e: Any) -> str:
        return self._reduction("sum", e, e.function)

    def _print_MaxOver(self, e: Any) -> str:
        return self._reduction("max", e, e.function)

    def _print_Entropy(self, e: Any) -> str:
        return self._reduction("entropy", e, e.function)

    def _print_LogSumExp(self, e: Any) -> str:
        f, w = e.function
        return self._reduction("logsumexp", e, f, *self._weight(w))

    def _print_Slope(self, e: Any) -> str:
        return "d{}/d{}".format(*map(self._print, e.args))

    def _print_SoftmaxAt(self, e: Any) -> str:
        f, w, i = e.args
        return f"softmax_{i}({', '.join([self._print(f), *self._weight(w)])})"

    def _weight(self, w: Any) -> tuple[str, ...]:
        return () if w == 1 else (f"weight={self._print(w)}",)

    def _print_AtMax(self, e: Any) -> str:
        f, g = map(self._print, e.function)
        return f"({g} where {f} is largest over {limit_text(e.limits[0])})"

    def _print_Counted(self, e: Any) -> str:
        weight, x = map(self._print, e.args)
        return f"({x} where {weight} is not 0)"

    def _print_Pow(self, e: Any, rational: bool = False) -> str:
        return str(super()._print_Pow(e, rational)).replace("**", "^")

    def _print_Piecewise(self, e: Any) -> str:
        cases = [f"{self._print(v)} if {self._print(c)}" if c is not sp.true else f"else {self._print(v)}" for v, c in e.args]
        return f"({', '.join(cases)})"

    def _print_Equality(self, e: Any) -> str:
        return f"{self._print(e.lhs)} = {self._print(e.rhs)}"

    def _print_Unequality(self, e: Any) -> str:
        return f"{self._print(e.lhs)} != {self._print(e.rhs)}"

    def _print_KroneckerDelta(self, e: Any) -> str:
        return f"[{self._print(e.args[0])} = {self._print(e.args[1])}]"


SHORT = {"eps": "epsilon", "lam": "lambda"}
"""Names of Greek letters as code has them."""


class LatexPrinter(SympyLatexPrinter):  # type: ignore[misc]
    """A printer of LaTeX with names of several letters upright."""

    def _words(self, text: str) -> str:
        return rf"\ \text{{{text}}}\ "

    def _deal_with_super_sub(self, string: str, style: str = "plain") -> str:
        name, supers, subs = split_super_sub(string)
        if name in SHORT:
            return self._deal_with_super_sub(string.replace(name, SHORT[name], 1), style)
        accent = name[1:] in modifier_dict  # xbar: sympy writes the accent
        if len(name) > 1 and not accent and name.lower() not in greek_letters_set and name.isascii() and name.isalpha():
            return rf"\mathrm{{{name}}}" + "".join(f"^{{{s}}}" for s in supers) + (f"_{{{' '.join(subs)}}}" if subs else "")
        return str(super()._deal_with_super_sub(string, style=style))

    def _print_ExpBase(self, expr: Any, exp: Any = None) -> str:
        if exp is None and expr.args[0].has(sp.Sum):  # too tall for an exponent
            return rf"\exp\left({self._print(expr.args[0])}\right)"
        return str(super()._print_ExpBase(expr, exp))

    def _print_Slope(self, e: Any) -> str:
        return r"\frac{{\partial {}}}{{\partial {}}}".format(*map(self._print, e.args))

    def _print_SoftmaxAt(self, e: Any, exp: Any = None) -> str:
        f, w, i = e.args
        power = "" if exp is None else rf"^{{{exp}}}"
        return rf"\operatorname{{softmax}}_{{{self._print(i)}}}\left({self._print(f)}{self._weight(w)}\right){power}"

    def _print_LogSumExp(self, e: Any) -> str:
        f, w = e.function
        return rf"\operatorname{{logsumexp}}_{{{limit_latex(e.limits[0], self)}}}\left({self._print(f)}{self._weight(w)}\right)"

    def _print_Entropy(self, e: Any) -> str:
        return rf"\operatorname{{entropy}}_{{{limit_latex(e.limits[0], self)}}}\left({self._print(e.function)}\right)"

    def _weight(self, w: Any) -> str:
        return "" if w == 1 else f"; {self._words('weight')}{self._print(w)}"

    def _print_And(self, e: Any) -> str:
        parts = sorted(e.args, key=lambda a: (not isinstance(a, sp.Eq), str(a)))
        return f" {self._words('and')}".join(map(self._print, parts))
