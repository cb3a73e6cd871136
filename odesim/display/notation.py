"""Mathematics in prose as formulas: what terminals show as k^2 I_k(beta) is k² I_k(β) on a page and in a picture.

Docstrings, summaries and statements of claims are read in terminals too, and are written in ASCII; code in backticks stays as it is.
"""

import re
from collections.abc import Iterator

GREEK = (
    "alpha|beta|gamma|gam|delta|epsilon|eps|zeta|eta|theta|iota|kappa|lambda|lam|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
FUNCTIONS = "sin|cos|tan|tanh|log|ln|exp"
OPERATORS = {
    "sum": r"\sum",
    "int": r"\int",
    "prod": r"\prod",
    "max": r"\max",
    "min": r"\min",
    "log": r"\log",
    "softmax": r"\operatorname{softmax}",
}
SIGNS = {
    ">=": "≥",
    "<=": "≤",
    "!=": "≠",
    r"\+-": "±",
    r"(?<![-<])->": "→",
    r"(?<=\s)<-(?=\s)": "←",
    r"\bsqrt(?=\()|\bsqrt (?=\d)": "√",
    r"(?<=[(\[, -])inf(?=[)\]])|(?<=[(\[]-)inf(?=,)": "∞",
    r"(?<=\d) x (?=\d)": " × ",
    r"(?<![\w.)\]}|])(?=\.\d)": "0",
    r"(?<![\w)\]}|∞-])-(?=[\d∞√.(|])|(?<=\s)-(?=\s)|(?<=[(\[])-(?=[A-Za-z])|(?<== )-(?=[A-Za-z])|(?<=[\s(\[=,])-$|^-(?=[\d(|])": "−",
}
POWER = re.compile(r"(?:(?<![\w.])1|(?<=\d)(?P<times>))e([+-]?)0*(\d+)\b")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
BRACKETS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"  # with brackets inside them two deep
LOWER = rf"_(?:[A-Za-z0-9]+'*|\*|\{{[^{{}}]*\}}|{BRACKETS})"
ITEM = rf"(?:{GREEK}|\w{{1,2}}'*)(?:\s?[+-]\s?\w)?"
INDEX = rf"\[{ITEM}(?:,\s?{ITEM})*\]"
UPPER = rf"\^(?:-?(?:\d+(?:\.\d+)?[A-Za-z]?|[A-Za-z]+\d?'*(?:{LOWER})?|{BRACKETS}|\|[^|]*\|)|\*)"
SHORT = rf"_(?:[A-Za-z0-9]|{BRACKETS})(?!\w)"  # of a word such as gap_k or Cov_p; longer ones are names in code
STAR = r"\*(?![\w(*])"  # of t*
SCRIPT = rf"{LOWER}|{INDEX}|{UPPER}|{STAR}"
NAME = rf"[dD]?(?:{GREEK})\d?(?:bar|hat|dot)?'*|[A-Za-z]bar'*|[xyzvpqm]hat'*"
LETTER = r"[dD]?(?![EU]\[)[A-Za-z]\d?'*"  # E[x] is a mean, U[0, 1] a uniform number
FORMULA = re.compile(
    rf"(?<![\w\\._])(?:(?P<operator>{'|'.join(OPERATORS)})(?={LOWER})(?:{LOWER})(?:{UPPER})?|(?P<name>{NAME})(?:{SCRIPT})*"
    rf"|(?P<letter>{LETTER})(?:{SCRIPT})+|(?P<word>[A-Za-z]{{2,}})(?:(?:{SHORT})(?:{UPPER})?|(?:{UPPER}))"
    rf"|(?P<number>\d*\.?\d+)(?:{UPPER}))(?!\w|\.\w)"
    rf"|(?<=[)\]}}|+])(?:{UPPER})(?!\w)|(?<=\|)(?:{LOWER})(?:{UPPER})?(?!\w)"
)
SCRIPTS = re.compile(rf"(?P<lower>{LOWER})|(?P<index>{INDEX})|(?P<upper>{UPPER}|{STAR})")
PREFIXED = re.compile(rf"([dD]?)({GREEK}|[A-Za-z])(\d?)(bar|hat|dot)?('*)$")
WORD = re.compile(r"\\?[A-Za-z]{2,}|[*%#&$]")


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it is a formula, LaTeX or text) of the parts of prose."""
    last = 0
    for match in FORMULA.finditer(text):
        yield False, signs(text[last : match.start()])
        yield True, latex(match)
        last = match.end()
    yield False, signs(text[last:])


def signs(text: str) -> str:
    """Text with the signs that ASCII lacks."""
    for pattern, sign in SIGNS.items():
        text = re.sub(pattern, sign, text)
    return POWER.sub(lambda found: f"{'·' * (found['times'] is not None)}10{(found[2].strip('+') + found[3]).translate(RAISED)}", text)


def latex(match: re.Match[str]) -> str:
    """A formula of prose in LaTeX: dx_i as dx_{i}, P^l[r, s] as P_{r, s}^{l}, W2^T as W_{2}^{T}."""
    base = next(filter(None, match.groups()), "")
    sign, lower, upper = symbol(base) if match["name"] or match["letter"] else OPERATORS.get(base, base), list[str](), list[str]()
    if match["word"]:
        sign = rf"\{base}" if re.fullmatch(FUNCTIONS, base) else rf"\mathrm{{{base}}}"
    for script in SCRIPTS.finditer(match[0], len(base)):
        inside = script[0][1:-1] if script["index"] else script[0][1:] or "*"
        if not script["index"] and inside[0] in "({":
            inside = inside[1:-1]
        if script["lower"] and not match["operator"]:  # of x_i' the prime is that of x; another index stands in brackets, x[i']
            name = inside.rstrip("'")
            sign, inside = sign + inside[len(name) :], name
        (upper if script["upper"] else lower).append(inner(inside))
    return "0" * sign.startswith(".") + (sign or "{}") + f"_{{{','.join(lower)}}}" * bool(lower) + f"^{{{','.join(upper)}}}" * bool(upper)


def symbol(name: str) -> str:
    """A symbol in LaTeX: dtheta as d\\theta, xbar as \\bar{x}, W2 as W_2 in braces, for it may have more indices."""
    match = PREFIXED.match(name)
    if match is None:
        return name
    prefix, sign, number, accent, primes = match.groups()
    sign = sign if len(sign) == 1 else "\\" + {"eps": "epsilon", "gam": "gamma", "lam": "lambda"}.get(sign, sign)
    sign = rf"\{accent}{{{sign}}}" if accent else sign
    return prefix + (f"{{{sign}_{number}}}" if number else sign) + primes


def inner(text: str) -> str:
    """What stands in a script in LaTeX: its symbols, words upright."""
    if text == "*":
        return text
    return "".join(part if formula else WORD.sub(upright, part.replace("−", "-")) for formula, part in pieces(text))


def upright(word: re.Match[str]) -> str:
    """A word or sign of a script: two letters are two indices."""
    text = word[0]
    signs = {"*": r"\,", "in": r"\in"}
    return signs.get(text) or (rf"\{text}" if not text[-1].isalpha() else text if len(text) == 2 else rf"\mathrm{{{text}}}")
