"""Text made of templates."""

from collections.abc import Iterable


def fit(template: str, **words: object) -> str:
    """The template with its words; a word of several lines goes on where the first of them begins."""
    out = []
    for line in template.split("\n"):
        name = line.strip().strip("{}")
        if line.strip() == f"{{{name}}}":
            margin = line[: len(line) - len(line.lstrip())]
            out += [margin + inner for inner in str(words[name]).split("\n")]
        else:
            out.append(line.format(**words))
    return "\n".join(out)


def put_state(place: str, source: Iterable[int], width: int) -> str:
    """Lines that write a state of n numbers."""
    return "\n".join(f"{place} + {d}] = S[{row * width} + l]" for d, row in enumerate(source))
