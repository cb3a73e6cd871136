"""Counts P(context token | next token) in the English text of Python's own help, for scan_snap.full.

`python examples/pydoc_counts.py [FOLDER]` writes P.csv, tokens.csv and source.json (default: examples/pydoc).
The text, `pydoc_data.topics`, comes with every CPython; it differs a little from version to version.
"""

import hashlib
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

# (query, next token), one pair a class: two classes share the query "the", the third has its own
CLASSES = (("the", "class"), ("the", "function"), ("an", "exception"))
PSI = (0, 0, 1)
WINDOW = 24  # context: as many tokens of the same paragraph right before the query
S = 29  # context tokens kept; with 2 queries and 3 next tokens they are M = 34


def digest() -> str:
    """The sha256 of the text that is counted: two Pythons with one digest give one table."""
    text = "\0".join(f"{name}\0{topics[name]}" for name in sorted(topics))
    return hashlib.sha256(text.encode()).hexdigest()


def paragraphs() -> Iterator[list[str]]:
    """The lower-case words of each paragraph of prose; grammar, sessions and indented code are left out."""
    for name in sorted(topics):
        for block in re.split(r"\n\s*\n", topics[name]):
            if "::=" in block or ">>>" in block or any(line.startswith("   ") for line in block.splitlines()):
                continue
            yield re.findall(r"[a-z]+", block.lower())


def count() -> tuple[list[str], list[list[int]]]:
    """The S context tokens, most frequent first, and how often each stands before each class: (K, S)."""
    own = {word for pair in CLASSES for word in pair}
    seen: list[Counter[str]] = [Counter() for _ in CLASSES]
    for words in paragraphs():
        for i, pair in enumerate(pairwise(words)):
            if pair in CLASSES:
                window = words[max(0, i - WINDOW) : i]
                # queries and next tokens are tokens of their own kind; single letters are names in code
                seen[CLASSES.index(pair)].update(w for w in window if w not in own and len(w) > 1)
    total = sum(seen, Counter[str]())
    tokens = sorted(total, key=lambda w: (-total[w], w))[:S]
    return tokens, [[counter[w] for w in tokens] for counter in seen]


def write(folder: Path) -> None:
    """Writes P.csv (K, S), tokens.csv (a column of P a line, with its counts) and source.json into folder."""
    tokens, counts = count()
    rows = [[c / sum(row) for c in row] for row in counts]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "P.csv").write_text("".join(",".join(map(repr, row)) + "\n" for row in rows))
    lines = [",".join(["token", *(target for _, target in CLASSES)])]
    lines += [",".join([token, *map(str, column)]) for token, *column in zip(tokens, *counts, strict=True)]
    (folder / "tokens.csv").write_text("\n".join(lines) + "\n")
    source = {"text": "pydoc_data.topics", "python": platform.python_version(), "sha256": digest()}
    (folder / "source.json").write_text(json.dumps(source, indent=2) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pydoc")
