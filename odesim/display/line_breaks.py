"""Formulas in LaTeX broken into lines: LaTeX, matplotlib and browsers break no displayed formula by themselves.

A line begins before +, -, =, "and" or the ranges of the indices, outside of brackets if that is enough; then before a factor, then in
brackets. A fraction or root that is wider than a line is a product first: it has no place to break. In cases that are still wider than a
line, each condition stands below what it is for, broken as a formula of its own.
"""

import re
from collections.abc import Callable, Iterator
from math import inf

LETTERS = 80.0  # in a line of a formula
OPEN, CLOSE = r"\left. ", r" \right."  # brackets that are not seen, around the part of a line that lies in brackets of others
RELATION = r"(?:[+-]|=|\\(?:leq|geq|leftarrow)) |\\ \\(?:text|mathrm)\{(?:and|weight)\}"
SIGN = re.compile(rf"(?<=[^\s=({{\[,&]) (?={RELATION})")  # the space before a sign between two terms or sides, or "and"
FACTOR = re.compile(r" (?=\\, (?:\\left|\\sum|\\operatorname|\\exp|\\log|\\mathrm\{\w+\}\{?\\left))")  # the space before a long factor
PRODUCT, TIMES, ROOT = r" \, ", r"\times ", r"\sqrt"  # the sign of a product within a line, and at its beginning
RANGES = r" \qquad "  # before the ranges of the indices, which end a formula
TOKEN = re.compile(r"\\left\b|\\right\b|\\[a-zA-Z]+|\\.|[{}]")
PIECE = re.compile(r"\\(?:dfrac|frac)|\\[a-zA-Z]+|\\.|[{}_^]|\s+|.", re.DOTALL)
SCRIPT, WIDE = 0.8, {r"\sum": 1.6, r"\prod": 1.6, r"\,": 0.3, r"\qquad": 4.0, r"\quad": 2.0}  # widths in letters
UNSEEN = re.compile(r"\\(left|right|mathrm|mathtt|mathbb|text|operatorname|displaystyle|;|!)")
GROUP = re.compile(r"\\(?:d?frac|sqrt)(?=\{)|\\.|[{]", re.DOTALL)
FUNCTION = re.compile(r"(?:\\(?!text|math|operatorname)[a-z]+|\\(?:mathrm|operatorname)\{\w+\})(?:\^\{[^{}]*\})?$")
# of a case; of one that has cases in itself, the word before it
CONDITION = re.compile(r" & (\\text\{(?:for|otherwise)\}(?:(?! \\\\| \\end|\\begin).)*(?= \\\\| \\end)|\\text\{for\})")
SUM = re.compile(r"\\(?:sum|prod)(?![a-zA-Z])")
BRACKET = re.compile(r"\\(left|right)\b\s*(\\[a-zA-Z]+|\\.|.)\s?")
SHARES = 1.0, 0.7, 0.5
"""A fraction wider than this part of a line becomes a product: the next one if lines are too wide with the one before."""


def break_formula(text: str, width: Callable[[str], float], most: float) -> list[str]:
    """The lines of a formula, no wider than `most` where it has places to break. width: of a formula."""
    best = [text]
    for share in SHARES:
        if max(map(width, best)) <= most:
            break
        best = min(best, fewest_brackets(unfolded(text, width, share * most), width, most), key=lambda lines: max(map(width, lines)))
    room = most - width(r"\begin{cases} \quad \end{cases}")
    below = CONDITION.sub(lambda found: "".join(rf" \\ \quad {line}" for line in break_formula(found[1], width, room)), text)
    return best if max(map(width, best)) <= most or below == text else break_formula(below, width, most)


def fewest_brackets(text: str, width: Callable[[str], float], most: float) -> list[str]:
    """The lines of a formula whose fractions stay, broken in as few brackets as possible."""
    places = list(places_to_break(text))
    lines = [text]
    for depth in sorted({depth for _, depth in places}):
        lines = fill(text, {at: level for at, level in places if level <= depth}, width, most)
        if max(map(width, lines)) <= most:
            break
    return lines


def unfolded(text: str, width: Callable[[str], float], most: float) -> str:
    r"""A formula without fractions and roots that are wider than most, and without braces around the arguments of functions.

    \frac{a + b}{c}  ->  \frac{1}{c} \, \left(a + b\right)        \frac{a}{b + c}  ->  a \, \left(b + c\right)^{-1}
    """
    out, at = "", 0
    while (token := GROUP.search(text, at)) is not None:
        out, at = out + text[at : token.start()], token.end()
        if token[0] == ROOT:
            inside, at = braced(text, at)
            part = rf"\sqrt{{{inside}}}"
            out += part if width(part) <= most else unfolded(rf"\left({inside}\right)^{{1/2}}", width, most)
        elif token[0] in (r"\frac", r"\dfrac"):
            above, at = braced(text, at)
            below, at = braced(text, at)
            part = rf"{token[0]}{{{above}}}{{{below}}}"
            wide, followed = width(below) > most, text.startswith(PRODUCT, at)
            short = width(part) <= most or (above == "1" and not wide)
            out += part if short else unfolded(quotient(part, above, below, wide, followed), width, most)
        elif token[0] == "{":
            inside, at = braced(text, at - 1)
            bare = inside.startswith(r"\left") and FUNCTION.search(out)
            out += unfolded(inside, width, most) if bare else f"{{{inside}}}"
        else:
            out += token[0]
    return out + text[at:]


def quotient(fraction: str, above: str, below: str, wide: bool, followed: bool) -> str:
    """A fraction as a product. wide: what stands below is too; followed: a factor comes after it, which no sum may reach."""
    places = list(places_to_break(above))
    if any(level == 0 for _, level in places) or above.startswith("- ") or ((followed or wide) and SUM.search(above)):
        above, places = rf"\left({above}\right)", []
    if wide:
        inside, end = braced(below, len(ROOT)) if below.startswith(ROOT) else (below, 0)
        power = rf"\left({inside}\right)^{{-1/2}}" if end == len(below) else rf"\left({below}\right)^{{-1}}"
        return power if above == "1" else above + PRODUCT + power
    end = 0 if FACTOR.match(PRODUCT + above) else next((at for at, level in places if level < 1), 0)
    short, rest = above[:end] or "1", above[end:].removeprefix(PRODUCT)
    return rf"{fraction.partition('{')[0]}{{{short}}}{{{below}}}{PRODUCT}{rest}"


def braced(text: str, start: int) -> tuple[str, int]:
    """(what is in the braces that open at start, the place after them)."""
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text[start:]):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[start + 1 : start + brace.start()], start + brace.end()
    return text[start + 1 :], len(text)


def places_to_break(text: str) -> Iterator[tuple[int, float]]:
    """(place of a space, number of pairs of brackets around it), not inside of fractions, scripts, cases and ranges.

    The number is .5 more before the ranges, .7 more before a factor, .9 more between ranges: rather than that brackets are broken.
    """
    text, mark, ranges = text.partition(RANGES)
    levels = {m.start(): 0.0 for m in SIGN.finditer(text)} | {m.start(): 0.7 for m in FACTOR.finditer(text)}
    depth, braces, last = 0, 0, 0
    for token in [*TOKEN.finditer(text), None]:
        if braces == 0:
            end = len(text) if token is None else token.start()
            yield from ((at, depth + levels[at]) for at in range(last, end) if at in levels)
        if token is not None:
            depth += {r"\left": 1, r"\right": -1}.get(token[0], 0) if braces == 0 else 0
            braces += {"{": 1, "}": -1, r"\begin": 1, r"\end": -1}.get(token[0], 0)
            last = token.end()
    if mark:
        yield len(text), 0.5
        yield from ((len(text + mark) + m.end(), 0.9) for m in re.finditer(r",\\;(?= )", ranges))


def fill(text: str, places: dict[int, float], width: Callable[[str], float], most: float) -> list[str]:
    """Lines of text, cut at some of these places {place: level}: at the last of the lowest level that leaves no line half empty."""
    lines, first = list[str](), 0
    while True:
        end, least, half = 0, inf, False
        for at, level in (*((at, level) for at, level in places.items() if at > first), (len(text), -1.0)):
            size = width(closed(text, first, at))
            if end and size > most:
                break
            if level <= least or not half:
                end, least, half = at, level, size > most / 2
        lines.append(closed(text, first, end))
        if end == len(text):
            return lines
        first = end


def closed(text: str, first: int, end: int) -> str:
    """text[first:end], with unseen brackets for those that begin before it or end after it, and a sign before a factor."""
    before, inside, line = open_brackets(text[:first]), open_brackets(text[:end]), text[first:end].strip()
    return OPEN * before + (TIMES + line[len(r"\, ") :] if line.startswith(r"\, ") else line) + CLOSE * inside


def sized_brackets(line: str) -> str:
    """A line with brackets of one size where their other half is on another line, and none that are not seen: these would leave a hole."""
    pairs, opened = list[tuple[re.Match[str], re.Match[str]]](), list[re.Match[str]]()
    for bracket in BRACKET.finditer(line):
        if bracket[1] == "left":
            opened.append(bracket)
        else:
            pairs.append((opened.pop(), bracket))
    swaps: dict[int, str] = {}
    for pair in pairs:
        if "." in (pair[0][2], pair[1][2]):
            # in braces, for Chromium stretches no bracket that has an exponent
            swaps |= {b.start(): "" if b[2] == "." else rf"{{\bigg{b[1][0]}{b[2]}}}" for b in pair}
    line = BRACKET.sub(lambda b: swaps.get(b.start(), b[0]), line).strip()
    return "{} " + line if line.startswith(("+ ", "- ", r"\times ")) else line


def open_brackets(text: str) -> int:
    """How many pairs of brackets are open at the end of text."""
    return len(re.findall(r"\\left\b", text)) - len(re.findall(r"\\right\b", text))


def letters(text: str) -> float:
    """About how wide a formula is, in letters: the wider of parts above each other counts, scripts are small, commands are one letter."""
    return row_width(PIECE.findall(UNSEEN.sub("", text))[::-1])


def row_width(queue: list[str], end: str = "") -> float:
    """The width of the tokens up to `end`, which leave the queue: of the widest row."""
    rows, part, scripts, limits = [0.0], 0.0, 0.0, False
    while queue and (token := queue.pop()) != end:
        if token in ("_", "^"):
            scripts = max(scripts, SCRIPT * group_width(queue))
            continue
        rows[-1] += max(part, scripts) if limits else part + scripts
        part, scripts, limits = 0.0, 0.0, SUM.match(token) is not None
        if token == r"\\":
            rows.append(0.0)
        elif token in (r"\frac", r"\dfrac"):
            part = max(group_width(queue), group_width(queue)) + 0.3
        elif token == "{":
            part = row_width(queue, "}")
        elif token == r"\begin":
            queue.pop()  # the brace before the name
            row_width(queue, "}")
            part = row_width(queue, r"\end") + WIDE[r"\quad"]
            group_width(queue)
        elif token.strip():
            part = WIDE.get(token, 1.0) + 0.8 * (token in "+-=")
    rows[-1] += max(part, scripts) if limits else part + scripts
    return max(rows)


def group_width(queue: list[str]) -> float:
    """The width of the next part, which leaves the queue: one token, or what is in braces."""
    token = queue.pop() if queue else ""
    return row_width(queue, "}") if token == "{" else row_width([token])
