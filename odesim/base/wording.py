"""Numbers in sentences: counted nouns."""


def many(count: float, noun: str, plural: str = "") -> str:
    """`1 member`, `2 members`, `0 members`, `0.5 steps`; plural: of a noun that takes another ending than s."""
    word = noun if count == 1 else plural or f"{noun}s"
    return f"{count:g} {word}" if isinstance(count, float) and count < 1e6 else f"{count:.0f} {word}"
