"""Generates text from templates."""

from collections.abc import Iterable
from dataclasses import dataclass


def fit(template: str, **words: object) -> str:
    """The template with its words filled in; a word of several lines is indented like its first line."""
    out = []
    for line in template.split("\n"):
        name = line.strip().strip("{}")
        if line.strip() == f"{{{name}}}":
            margin = line[: len(line) - len(line.lstrip())]
            out += [margin + inner for inner in str(words[name]).split("\n")]
        else:
            out.append(line.format(**words))
    return "\n".join(out)


def lone_words(template: str) -> list[str]:
    """The words that stand alone on a line, for lines of text: "pass" takes the place of those that have none."""
    lines = [line.strip() for line in template.split("\n")]
    return [line[1:-1] for line in lines if line.startswith("{") and line.endswith("}") and line[1:-1].isidentifier()]


def put_state(place: str, source: Iterable[int], width: int) -> str:
    """Lines that write a state of n numbers. place: where component d goes, such as `out[i * 4 + {d}]`."""
    return "\n".join(f"{place.format(d=d)} = S[{row * width} + l]" for d, row in enumerate(source))


@dataclass(frozen=True)
class Where:
    """Texts by which a kernel names the member of a lane and the places of the member's numbers.

    member: the place of the member's number. saved: the place of how many of its times are saved. out, first, end: the place of component
    d of its states at the q-th saved time, at the first one, and where it ended.
    """

    member: str
    saved: str
    out: str
    first: str
    end: str


def lane_where(n: int) -> Where:
    """The Where of lanes, whose members of n states lie one after another."""
    return Where(
        member="members[l]",
        saved="places[l]",
        out=f"out[(i * saves + q) * {n} + {{d}}]",
        first=f"out[i * saves * {n} + {{d}}]",
        end=f"state[i * {n} + {{d}}]",
    )
