"""Text of the code as Markdown: plain text, text with symbols, references."""

import re
from importlib import import_module
from pathlib import Path
from unicodedata import normalize

from sympy import Symbol

from odesim.display.formulas import Formulas
from odesim.display.notation import pieces
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stabilised_methods import STABILISED
from odesim.stepper.taylor import LEAST, MOST
from odesim.symbolic import System
from odesim.symbolic.definition import all_names

ROOT = Path(__file__).parents[2]
SCREEN = 15  # formulas
WORD = re.compile(r"\\mathrm\{(\w+)\}")


def plain(text: str) -> str:
    """Plain text as Markdown: signs that are markup stand for themselves, code in backticks stays."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(part if k % 2 else re.sub(r"([\\*_<>\[\]$#|])", r"\\\1", part) for k, part in enumerate(parts))


def captions(text: str) -> str:
    """Plain text about a figure as Markdown: from ": a, ...; b and c, ..." on a list of its panels, then the sentences that are left."""
    text = " ".join(text.split())
    starts = list[re.Match[str]]()
    letter = "a"
    while found := re.compile(rf"(?:(?<=[:;.,] )|^){letter}(?: (?:and|to) ([b-z]))?, ").search(text, starts[-1].end() if starts else 0):
        starts.append(found)
        letter = chr(ord(found[1] or letter) + 1)
    if len(starts) < 2:
        return plain(text)
    ends = [*(found.start() for found in starts[1:]), len(text)]
    items = [text[found.end() : end].rstrip("; ") for found, end in zip(starts, ends, strict=True)]
    items[-1], stop, rest = re.sub(r"\. (?=[A-Z])", ".\0", items[-1], count=1).partition("\0")
    rows = [f"- **{found[0][:-2]}**: {plain(item.rstrip('.'))}" for found, item in zip(starts, items, strict=True)]
    return "\n\n".join([plain(text[: starts[0].start()].strip()), "\n".join(rows), *[plain(rest)] * bool(stop)])


def prose(text: str, system: System) -> str:
    """Text about a System as Markdown, with its symbols as formulas: xbar[c], v^2. Names that are words stay words."""
    latex = Formulas(system).print_latex
    signs = {name: latex(Symbol(name)) for name in all_names(system)}
    signs = {name: sign for name, sign in signs.items() if not sign.startswith(r"\mathrm")}
    alone = re.compile(rf"(?<![\w\\])({'|'.join(sorted(map(re.escape, signs), key=len, reverse=True))})(?![\w'(])")
    parts = re.split(r"(`+[^`]+`+)", text)
    for k in range(0, len(parts), 2):
        out = ""
        for formula, part in pieces(parts[k]):
            if formula:  # of names of several letters the symbol is the System's
                out += f"${WORD.sub(lambda name: signs.get(name[1], name[0]), part)}$"
            else:
                words = alone.split(part)
                out += "".join(f"${signs[w]}$" if n % 2 and w not in ("a", "A", "I") else plain(w) for n, w in enumerate(words))
        parts[k] = out
    return "".join(parts)


def folded(text: str) -> str:
    """Sections of Markdown, each under a line in bold, of which long ones are to be opened: steps of an iteration are many formulas."""
    parts = re.split(r"^\*\*(.+)\*\*$", text, flags=re.MULTILINE)
    out = parts[:1]
    for title, section in zip(parts[1::2], parts[2::2], strict=True):
        count = section.count("\n$$\n") // 2
        out.append(f"::::{{dropdown}} {title}: {count} formulas\n{section}\n::::\n" if count > SCREEN else f"**{title}**{section}")
    return "".join(out)


def bibliography(keys: set[str]) -> list[str]:
    """A line for each of these papers of `models/references.bib`."""
    text = (ROOT / "models" / "references.bib").read_text(encoding="utf-8")
    lines = []
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL):
        if key in keys:
            fields = {
                name: accented(re.sub(r"[{}]", "", value))
                for name, value in re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, flags=re.MULTILINE)
            }
            people = [person.partition(",")[0] for person in fields["author"].split(" and ")]
            rest = "; ".join(fields[name] for name in ("note", "doi") if name in fields)
            rest = re.sub(r"arXiv:(\d+\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", rest)
            lines.append(f"- `{key}`: {', '.join(people)}, *{plain(fields['title'])}*, {fields['year']}{', ' * bool(rest)}{rest}")
    return ["\n".join(lines)] if lines else []


def accented(text: str) -> str:
    r"""Text of BibTeX with its accents: Zdeborov\'a as Zdeborová."""
    marks = {"'": "\u0301", '"': "\u0308"}
    return re.sub(r"\\(['\"])(\w)", lambda sign: normalize("NFC", sign[2] + marks[sign[1]]), text)


def methods_table() -> str:
    """A row for each method, from its file: what it is for stands in the first line."""
    rows = ["| method | kind | order | use it for |", "|---|---|---|---|"]
    rows.append("| `auto` | the default | | any model: it chooses a method, and reports which one and why |")
    for kind, table in (("explicit", METHODS), ("Rosenbrock", ROSENBROCK), ("stabilised", STABILISED)):
        for name, method in table.items():
            folder = "methods" if table is METHODS else f"{kind.lower()}_methods"
            text = import_module(f"odesim.stepper.{folder}.{name}").__doc__ or ""
            use = text.partition("\n")[0].partition(": ")[2].rstrip(".")
            rows.append(f"| `{name}` | {kind}, {'adaptive' if method.adaptive else 'fixed step only'} | {method.order} | {use} |")
    use = "small smooth systems, for runs of many steps, many members and fine tolerances"
    rows.append(f"| `taylor` | series, adaptive | {LEAST} to {MOST}, by `rtol` | {use} |")
    return "\n".join(rows) + "\n"
