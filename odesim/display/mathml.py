"""Expressions as MathML, which browsers draw by themselves."""

from html import escape
from typing import Any

import sympy as sp
from sympy.printing.conventions import split_super_sub
from sympy.printing.pretty.pretty_symbology import greek_unicode
from sympy.printing.printer import Printer

from odesim.symbolic.reductions import triangle

SIGNS = {"==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥"}

ATOMS = ("is_Symbol", "is_Integer", "is_Float")


def tag(name: str, *inner: str, **attributes: str) -> str:
    """The element <name>inner</name>."""
    given = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{''.join(inner)}</{name}>"


def word(text: str) -> str:
    """A name: one letter is slanted, several letters are upright."""
    return tag("mi", escape(greek_unicode.get(text, text)))


def words(text: str) -> str:
    """Words between formulas; spaces at their ends stay."""
    return tag("mtext", escape(text.replace(" ", "\N{NO-BREAK SPACE}")))


def sign(text: str) -> str:
    """An operator."""
    return tag("mo", escape(text))


def row(*parts: str) -> str:
    """Parts beside each other."""
    return parts[0] if len(parts) == 1 else tag("mrow", *parts)


def brackets(inner: str, left: str = "(", right: str = ")") -> str:
    """inner in brackets that grow with it."""
    return row(sign(left), inner, sign(right))


def listed(parts: list[str]) -> str:
    """Parts with commas between them."""
    return row(*(piece for n, part in enumerate(parts) for piece in ([sign(",")] if n else []) + [part]))


class MathML(Printer):  # type: ignore[misc]
    """A printer of readable expressions (see arrange), in their own order."""

    def doprint(self, e: Any) -> str:
        return str(self._print(e))

    def emptyPrinter(self, expr: Any) -> str:
        return tag("mtext", escape(str(expr)))

    def _print_Symbol(self, e: Any) -> str:
        name, supers, subs = split_super_sub(e.name.rstrip("'"))
        text = word(name) if not supers else tag("msup", word(name), word(" ".join(supers)))
        text = tag("msub", text, row(*map(word, subs))) if subs else text
        primes = len(e.name) - len(e.name.rstrip("'"))
        return row(text, tag("mo", "′" * primes, lspace="0", rspace="0")) if primes else text

    def _print_Indexed(self, e: Any) -> str:
        return tag("msub", *self._parts(e))

    def _print_Slope(self, e: Any) -> str:
        return tag("mfrac", *(row(tag("mi", "∂"), self._print(part)) for part in e.args))

    def _parts(self, e: Any) -> tuple[str, str]:
        """The name and the indices of an array's element."""
        return self._print(e.base.label), listed([self._print(i) for i in e.indices])

    def _print_Integer(self, e: Any) -> str:
        return tag("mn", str(e)) if e >= 0 else row(sign("−"), tag("mn", str(-e)))

    def _print_Float(self, e: Any) -> str:
        return tag("mn", f"{float(e):g}") if e >= 0 else row(sign("−"), tag("mn", f"{-float(e):g}"))

    def _print_Rational(self, e: Any) -> str:
        quotient = tag("mfrac", tag("mn", str(abs(e.p))), tag("mn", str(e.q)))
        return quotient if e >= 0 else row(sign("−"), quotient)

    def _print_Add(self, e: Any) -> str:
        parts: list[str] = []
        for term in e.args:
            minus = term.could_extract_minus_sign() and (term.is_Number or term.is_Mul)
            if parts or minus:
                parts.append(sign("−" if minus else "+"))
            parts.append(self._positive(term) if minus else self._print(term))
        return row(*parts)

    def _positive(self, term: Any) -> str:
        """A term without its minus."""
        number, rest = term.as_coeff_Mul()
        if number >= 0:  # (-a + b) in a product
            return brackets(self._print(-term))
        return self._print(sp.Mul(-number, *sp.Mul.make_args(rest), evaluate=False) if number != -1 else rest)

    def _print_Mul(self, e: Any) -> str:
        if e.as_coeff_Mul()[0] < 0:
            return row(sign("−"), self._positive(e))
        above, below = sp.fraction(e, exact=True)
        if below == 1:
            return self._product(above)
        return tag("mfrac", self._product(above), self._product(below))

    def _product(self, e: Any) -> str:
        """The factors beside each other, thin spaces between them."""
        factors = [f for f in sp.Mul.make_args(e) if f != 1] or [sp.S.One]
        parts: list[str] = []
        for n, f in enumerate(factors):
            open_end = isinstance(f, sp.Sum) and n < len(factors) - 1
            text = self._print(f)
            needs = len(factors) > 1 and (f.is_Add or isinstance(f, sp.Piecewise) or open_end or (f.is_Number and f < 0))
            parts += [tag("mspace", width="0.17em")] * bool(parts) + [brackets(text) if needs else text]
        return row(*parts)

    def _print_Pow(self, e: Any) -> str:
        base, power = e.base, e.exp
        if power.is_Rational and power < 0:
            return tag("mfrac", tag("mn", "1"), self._print(sp.Pow(base, -power, evaluate=False) if power != -1 else base))
        if power == sp.S.Half:
            return tag("msqrt", self._print(base))
        if isinstance(base, sp.Indexed):
            return tag("msubsup", *self._parts(base), self._print(power))
        text = self._print(base)
        return tag("msup", text if any(getattr(base, kind, False) for kind in ATOMS) else brackets(text), self._print(power))

    def _print_ExpBase(self, e: Any) -> str:
        if e.args[0].has(sp.Sum):
            return row(tag("mi", "exp"), brackets(self._print(e.args[0])))
        return tag("msup", word("e"), self._print(e.args[0]))

    _print_exp = _print_ExpBase

    def _print_Sum(self, e: Any) -> str:
        parts = []
        for k, low, high in e.limits:
            parts.append(tag("munderover", sign("∑"), row(self._print(k), sign("="), self._print(low)), self._print(high)))
        body = self._print(e.function)
        return row(*parts, brackets(body) if e.function.is_Add else body)

    def _over(self, name: str, limit: Any, *arguments: str) -> str:
        """The formula name_index(arguments), with the limits of the index where they are not the whole axis."""
        k, low, high = limit
        t = triangle(low, high)
        below = self._print(k) if t is None else self._print(t.condition(k).readable())
        return row(tag("msub", tag("mi", name), below), brackets(row(*arguments)))

    def _weighted(self, f: Any, w: Any) -> list[str]:
        return [self._print(f), *([] if w == 1 else [sign(";"), words("weight "), self._print(w)])]

    def _print_MaxOver(self, e: Any) -> str:
        return self._over("max", e.limits[0], self._print(e.function))

    def _print_LogSumExp(self, e: Any) -> str:
        return self._over("logsumexp", e.limits[0], *self._weighted(*e.function))

    def _print_SoftmaxAt(self, e: Any) -> str:
        f, w, i = e.args
        return self._over("softmax", sp.Tuple(i, 0, 0), *self._weighted(f, w))

    def _print_Entropy(self, e: Any) -> str:
        return self._over("entropy", e.limits[0], self._print(e.function))

    def _print_AtMax(self, e: Any) -> str:
        f, g = map(self._print, e.function)
        k = self._print(e.limits[0][0])
        return row(brackets(g, "", "|"), words(" where "), tag("msub", tag("mi", "max"), k), words(" of "), f)

    def _print_Function(self, e: Any) -> str:
        name = {"Abs": "abs", "Max": "max", "Min": "min", "Mod": "mod"}.get(type(e).__name__, type(e).__name__)
        return row(tag("mi", name), brackets(listed([self._print(a) for a in e.args])))

    _print_Max = _print_Min = _print_Mod = _print_Function

    def _of(self, function: str, x: Any) -> str:
        """The formula function(x)."""
        return row(function, brackets(self._print(x)))

    def _print_jn(self, e: Any) -> str:
        return self._of(tag("msub", word("j"), self._print(e.args[0])), e.args[1])

    def _print_besseli(self, e: Any) -> str:
        return self._of(tag("msub", word("I"), self._print(e.args[0])), e.args[1])

    def _print_besseli_ratio(self, e: Any) -> str:
        n, x = e.args
        return tag("mfrac", self._print(sp.besseli(n + 1, x)), self._print(sp.besseli(n, x)))

    def _print_LambertW(self, e: Any) -> str:
        return self._of(tag("msub", word("W"), self._print(e.args[1])) if len(e.args) > 1 else word("W"), e.args[0])

    def _print_loggamma(self, e: Any) -> str:
        return self._of(row(tag("mi", "log"), word("Gamma")), e.args[0])

    def _print_polygamma(self, e: Any) -> str:
        n, x = e.args
        return self._of(word("psi") if n == 0 else tag("msup", word("psi"), brackets(self._print(n))), x)

    def _print_erfinv(self, e: Any) -> str:
        return self._of(tag("msup", tag("mi", "erf"), row(sign("−"), tag("mn", "1"))), e.args[0])

    def _print_binomial(self, e: Any) -> str:
        return brackets(tag("mfrac", *map(self._print, e.args), linethickness="0"))

    def _print_KroneckerDelta(self, e: Any) -> str:
        return tag("msub", word("delta"), listed([self._print(a) for a in e.args]))

    def _print_Neighbour(self, e: Any) -> str:
        i, c, _ = e.args
        return row(self._print(i), sign("−" if c < 0 else "+"), self._print(abs(c)))

    def _print_InverseOf(self, e: Any) -> str:
        return tag("msup", brackets(self._print(e.args[0]), "[", "]"), row(sign("−"), tag("mn", "1")))

    def _print_UpTo(self, e: Any) -> str:
        return self._print(e.readable())

    def _print_Inside(self, e: Any) -> str:
        return self._print(e.readable())

    def _print_Piecewise(self, e: Any) -> str:
        cases = []
        for value, condition in e.args:
            when = tag("mtext", "otherwise") if condition == sp.true else row(words("if "), self._print(condition))
            cases.append(tag("mtr", tag("mtd", self._print(value)), tag("mtd", when)))
        return row(sign("{"), tag("mtable", *cases, columnalign="left left"))

    def _print_Relational(self, e: Any) -> str:
        return row(self._print(e.lhs), sign(SIGNS[e.rel_op]), self._print(e.rhs))

    def _print_And(self, e: Any) -> str:
        return self._joined(e, " and ")

    def _print_Or(self, e: Any) -> str:
        return self._joined(e, " or ")

    def _joined(self, e: Any, between: str) -> str:
        parts = [self._print(a) for a in sorted(e.args, key=lambda a: (not isinstance(a, sp.Eq), str(a)))]
        return row(*(piece for n, part in enumerate(parts) for piece in ([words(between)] if n else []) + [part]))

    def _print_NaN(self, _: Any) -> str:
        return tag("mtext", "nan")

    def _print_Infinity(self, _: Any) -> str:
        return sign("∞")

    def _print_Pi(self, _: Any) -> str:
        return word("pi")
