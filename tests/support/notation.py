"""Mathematics as terminals show it, which no page and no picture does."""

import re

GREEK = (
    "alpha|beta|gamma|delta|epsilon|eps|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
ASCII = re.compile(rf"(?<![\w.])(?:[dD]?(?:{GREEK})|[A-Za-z]bar|(?:sum|prod)_\w+|[A-Za-z]_\w+)(?![\w]|\.\w)|\^|[<>!]=|\+-")

NUMBER = re.compile(r"(?<![\w.])\.\d|\d[eE][+-]?\d|(?<![\w\])}-])-(?=[\d.])|(?<=\s)-(?=\s)|(?<![\w.])\d+x\d")
"""A number without its 0, a power of ten, a minus, a product."""
