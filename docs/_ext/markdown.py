"""Text of the code as Markdown: plain text, formulas of a LaTeX document, references."""

import re
from importlib import import_module
from pathlib import Path

from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK

ROOT = Path(__file__).parents[2]
SIGNS = {r"\_": "_", r"\&": "&", r"\%": "%", r"\#": "#", r"\textless{}": "<", r"\textgreater{}": ">", r"\^{}": "^", r"\~{}": "~"}


def plain(text: str) -> str:
    """Plain text as Markdown: signs that are markup stand for themselves, code in backticks stays."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(part if k % 2 else re.sub(r"([\\*_<>\[\]$#|])", r"\\\1", part) for k, part in enumerate(parts))


def formulas(document: str) -> str:
    """The body of a LaTeX document of a System as Markdown."""
    body = document.partition(r"\begin{document}")[2].partition(r"\end{document}")[0]
    parts = []
    for line in body.splitlines()[1:]:
        if found := re.fullmatch(r"\\subsection\*\{(.*)\}", line):
            parts.append(f"**{found[1]}**")
        elif found := re.fullmatch(r"\\fit\{(.*)\}", line):
            formula = found[1].replace(r"\mathtt", r"\text").replace("{aligned}", "{split}")  # latex2mathml does not know aligned
            parts.append(f"$$\n{formula}\n$$")
        elif line.startswith(r"\section"):
            continue
        else:
            parts.append(to_text(line.removesuffix(r"\par")))
    return "\n\n".join(parts)


def to_text(line: str) -> str:
    """A line of LaTeX text with formulas as Markdown."""
    line = re.sub(r"\\textit\{((?:[^{}]|\{\})*)\}", r"*\1*", line)
    parts = re.split(r"(\$[^$]+\$)", line)
    return "".join(part if k % 2 else unescape(part) for k, part in enumerate(parts))


def unescape(text: str) -> str:
    """LaTeX text without its escapes, its markup escaped."""
    for sign, letter in SIGNS.items():
        text = text.replace(sign, letter)
    return re.sub(r"([_<>\[\]$#])", r"\\\1", text)


def bibliography(keys: set[str]) -> list[str]:
    """A line for each of these papers of `models/references.bib`."""
    text = (ROOT / "models" / "references.bib").read_text(encoding="utf-8")
    lines = []
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL):
        if key in keys:
            fields = {
                name: re.sub(r"[{}]", "", value) for name, value in re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, flags=re.MULTILINE)
            }
            people = [person.partition(",")[0] for person in fields["author"].split(" and ")]
            rest = "; ".join(fields[name] for name in ("note", "doi") if name in fields)
            rest = re.sub(r"arXiv:(\d+\.\d+)", r"[arXiv:\1](https://arxiv.org/abs/\1)", rest)
            lines.append(f"- `{key}`: {', '.join(people)}, *{plain(fields['title'])}*, {fields['year']}{', ' * bool(rest)}{rest}")
    return ["\n".join(lines)] if lines else []


def methods_table() -> str:
    """A row for each method, from its file: what it is for stands in the first line."""
    rows = ["| method | kind | order | use it for |", "|---|---|---|---|"]
    rows.append("| `auto` | the default | | any model: it chooses a method, and reports which one and why |")
    for kind, table in (("explicit", METHODS), ("Rosenbrock", ROSENBROCK)):
        for name, method in table.items():
            text = import_module(f"odesim.stepper.{'methods' if table is METHODS else 'rosenbrock_methods'}.{name}").__doc__ or ""
            use = text.partition("\n")[0].partition(": ")[2].rstrip(".")
            rows.append(f"| `{name}` | {kind}, {'adaptive' if method.adaptive else 'fixed step only'} | {method.order} | {use} |")
    return "\n".join(rows) + "\n"
