"""Formulas in the words of a picture: those of prose for matplotlib, between dollars, and these as html, with italic letters."""

import re
import unicodedata
from html import escape

from matplotlib.mathtext import MathTextParser

from odesim.display.notation import pieces
from odesim.plot.style import literal

SIGNS = {
    "times": "×",
    "cdot": "·",
    "leq": "≤",
    "geq": "≥",
    "infty": "∞",
    "langle": "⟨",
    "rangle": "⟩",
    "partial": "∂",
    "to": "→",
    "pm": "±",
    "in": "∈ ",
    "int": "∫",
}
ACCENTS = {"bar": "\u0304", "hat": "\u0302", "dot": "\u0307"}
BESIDE = {"sum": "∑", "prod": "∏", "max": r"\mathrm{max}", "min": r"\mathrm{min}"}
LIMITS = re.compile(rf"\\({'|'.join(BESIDE)})(?=_)")  # matplotlib puts their scripts above and below, so high that lines of prose touch
MATH = re.compile(
    r"\\(bar|hat|dot)\{(\\?[A-Za-z]+)\}|\\(?:mathrm|mathit|mathbf|text|operatorname)\s*\{([^{}]*)\}"
    r"|\\([A-Za-z]+)\s?|\\(.)|([_^])(?:\{|(?=\\?\w|\*))|([{}])"
)


def typeset(prose: str) -> str:
    """Prose with its formulas for matplotlib, as pages have them: `$x_{i}$` for x_i, code in backticks as it is.

    What matplotlib cannot parse stays as it is written. Call it where the style of pictures holds.
    """
    parts = re.split(r"`+([^`]+)`+", prose)
    words = "".join(literal(part) if k % 2 else "".join(map(between_dollars, pieces(part))) for k, part in enumerate(parts))
    try:
        MathTextParser("path").parse(words)
    except ValueError:
        return literal("".join(parts))
    return words


def between_dollars(piece: tuple[bool, str]) -> str:
    """A piece of prose for matplotlib: a formula between dollars, other words as they are."""
    formula, text = piece
    return f"${LIMITS.sub(lambda sign: BESIDE[sign[1]], text)}$" if formula else literal(text)


def words_of(text: str) -> str:
    """A text of matplotlib with its formulas as html: `$v_l$` becomes v with an index."""
    parts = re.split(r"(?<!\\)\$", text)
    formulas = [to_html(part) if k % 2 else escape(part.replace(r"\$", "$"), quote=False) for k, part in enumerate(parts)]
    return "".join(formulas).replace("\n", "<br>")


def to_html(formula: str) -> str:
    """A formula between dollars: letters are italic, indices and powers small, names of signs the signs."""
    formula = formula.replace(r"\mathdefault", "")  # what matplotlib writes around numbers
    out, open_marks, last = [""], list[str](), 0

    def put(piece: str) -> None:
        out.append(piece)
        if open_marks and open_marks[-1].startswith("!"):  # an index of one letter
            out.append(open_marks.pop()[1:])

    for match in MATH.finditer(formula):
        for letter in formula[last : match.start()]:
            put(f"<i>{letter}</i>" if letter.isalpha() else escape(letter, quote=False))
        accent, under, upright, sign, other, script, brace = match.groups()
        if accent:
            letter = under if len(under) == 1 else sign_of(under[1:])
            put(f"<i>{letter}{ACCENTS[accent]}</i>")
        elif upright is not None:
            put(escape(upright))
        elif sign:
            put(sign_of(sign))
        elif other:
            put({",": "\u2009", ";": "\u2009", " ": " "}.get(other, escape(other)))
        elif script:
            tag = "sub" if script == "_" else "sup"
            out.append(f"<{tag}>")
            open_marks.append(f"</{tag}>" if match[0].endswith("{") else f"!</{tag}>")
        elif brace == "{":
            open_marks.append("")
        elif open_marks:
            out.append(open_marks.pop())
        last = match.end()
    for letter in formula[last:]:
        put(f"<i>{letter}</i>" if letter.isalpha() else escape(letter, quote=False))
    return "".join([*out, *(mark.removeprefix("!") for mark in reversed(open_marks))])


def sign_of(name: str) -> str:
    """The sign of a name in LaTeX: Greek letters, some others, else the name."""
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")
    except KeyError:
        return SIGNS.get(name, name)
