"""Words of a picture as html: the formulas of matplotlib between dollars, with italic letters, indices and signs."""

import re
import unicodedata
from html import escape

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
}
MATH = re.compile(r"\\(?:mathrm|mathit|mathbf|text|operatorname)\s*\{([^{}]*)\}|\\([A-Za-z]+)\s?|\\(.)|([_^])(?:\{|(?=\\?\w|\*))|([{}])")


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
        upright, sign, other, script, brace = match.groups()
        if upright is not None:
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
