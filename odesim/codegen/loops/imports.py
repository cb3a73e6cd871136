"""The functions that generated modules import, and the hash of what they inline."""

import hashlib
from collections.abc import Collection
from functools import cache

from odesim.targets.cache import source_of

RUNTIME = "odesim.runtime"
INLINED = tuple(f"{RUNTIME}.{name}" for name in ("numbers", "stages", "reduce", "products", "vmath", "intrinsics", "access"))
"""Modules that every generated module may inline."""
OWN = {
    "vmath": ("exp", "log", "tanh", "expm1", "log1p", "erf", "pow", "floor"),
    "circular": ("sin", "cos", "tan", "sinc"),
    "inverse_circular": ("asin", "acos", "atan", "atan2"),
    "hyperbolic": ("asinh", "acosh", "atanh", "sinh", "cosh"),
    "error_function": ("erfc", "erfinv"),
    "gamma": ("loggamma", "digamma", "polygamma"),
    "lambert": ("lambertw", "lambertw_lower"),
    "bessel": ("besseli", "besseli_ratio"),
    "spherical": ("spherical_jn",),
    "counting": ("binomial",),
    "neighbours": ("clip", "on_axis", "wrap"),
    "running": ("add_down", "add_up"),
    "inverse": ("invert",),
}
"""{module of the runtime: its functions}: the same bits on every machine, as sqrt has, the one function of the C library."""
NEEDS = {
    "circular": (),
    "inverse_circular": ("circular",),
    "hyperbolic": (),
    "error_function": (),
    "gamma": (),
    "lambert": (),
    "bessel": (),
    "spherical": ("circular",),
    "counting": (),
    "neighbours": (),
    "running": (),
    "inverse": (),
}
"""{module: further modules of the runtime that it inlines}, beside those of INLINED."""


@cache
def runtime_key(*modules: str) -> str:
    """A hash, 12 hex digits, of the runtime source that generated modules inline: a change of it gives new modules.

    modules: those of the runtime that are inlined beside the common ones.
    """
    more = dict.fromkeys(name for m in modules for name in (m, *NEEDS[m]))
    sources = [*INLINED, *(f"{RUNTIME}.{name}" for name in more)]
    return hashlib.sha256("".join(map(source_of, sources)).encode()).hexdigest()[:12]


def key_for(used: Collection[str]) -> str:
    """The runtime_key of a module that uses these words."""
    return runtime_key(*(m for m in NEEDS if any(w in used for w in OWN[m])))


def own_imports(used: Collection[str]) -> list[str]:
    """The lines that import those of our functions that are used."""
    words = {module: [w for w in names if w in used] for module, names in OWN.items()}
    return [f"from {RUNTIME}.{module} import {', '.join(names)}" for module, names in words.items() if names]
