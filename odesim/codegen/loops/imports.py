"""The functions that generated modules import, and the hash of what they inline."""

import hashlib
from collections.abc import Collection
from functools import cache

from odesim.targets.cache import source_of

RUNTIME = "odesim.runtime"
INLINED = tuple(f"{RUNTIME}.{name}" for name in ("constants", "stages", "sums", "matrices", "elementary", "intrinsics", "views"))
"""Modules that every generated module may inline."""
OWN = {
    "elementary": ("exp", "log", "tanh", "expm1", "log1p", "erf", "pow", "asinh", "acosh", "atanh", "sinh", "cosh"),
    "intrinsics": ("floor",),
    "circular": ("sin", "cos", "tan", "sinc", "asin", "acos", "atan", "atan2"),
    "special": (
        *("erfc", "erfinv", "loggamma", "digamma", "polygamma", "lambertw", "lambertw_lower"),
        *("besseli", "besseli_ratio", "spherical_jn", "binomial"),
    ),
    "views": ("clip", "on_axis", "wrap"),
    "sums": ("add_down", "add_up"),
    "matrices": ("invert",),
}
"""{module of the runtime: its functions}: the same bits on every machine, as sqrt has, the one function of the C library."""
NEEDS = {"circular": ("circular",), "special": ("special", "circular")}
"""{module of the runtime: what is inlined with its functions} beside INLINED."""


@cache
def runtime_key(*modules: str) -> str:
    """A hash, 12 hex digits, of the runtime source that generated modules inline: a change of it gives new modules.

    modules: those of the runtime that are inlined beside the common ones.
    """
    more = dict.fromkeys(name for m in modules for name in NEEDS[m])
    sources = [*INLINED, *(f"{RUNTIME}.{name}" for name in more)]
    return hashlib.sha256("".join(map(source_of, sources)).encode()).hexdigest()[:12]


def key_for(used: Collection[str]) -> str:
    """The runtime_key of a module that uses these words."""
    return runtime_key(*(m for m in NEEDS if any(w in used for w in OWN[m])))


def own_imports(used: Collection[str]) -> list[str]:
    """The lines that import those of our functions that are used."""
    words = {module: [w for w in names if w in used] for module, names in OWN.items()}
    return [f"from {RUNTIME}.{module} import {', '.join(names)}" for module, names in words.items() if names]
