"""Numbers in sentences: counted nouns and ordinals."""


def many(count: float, noun: str, plural: str = "") -> str:
    """`1 member`, `2 members`, `0 members`, `0.5 steps`; plural: of a noun that takes another ending than s."""
    word = noun if count == 1 else plural or f"{noun}s"
    return f"{count:g} {word}" if isinstance(count, float) and count < 1e6 else f"{count:.0f} {word}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`, `22nd`."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{last}"
