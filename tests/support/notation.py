"""Mathematics as terminals show it, which no page does."""

import re

GREEK = (
    "alpha|beta|gamma|delta|epsilon|eps|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
ASCII = re.compile(rf"(?<![\w.])(?:[dD]?(?:{GREEK})|[A-Za-z]bar|(?:sum|prod)_\w+|[A-Za-z]_\w+)(?![\w]|\.\w)|\^|[<>!]=")
