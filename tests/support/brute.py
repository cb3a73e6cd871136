"""An expression's value by plain recursion over numbers: slow, and sharing nothing with lowering or code generation."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp
from scipy import special
from sympy import Indexed, IndexedBase, Symbol

from odesim.symbolic.functions import Counted, Share, Weighted, XLogY
from odesim.symbolic.indices import Clipped, Inside, Neighbour, Padded, Wrapped
from odesim.symbolic.layered import Inverse, Layer, Value
from odesim.symbolic.parts import key_indices
from odesim.symbolic.reductions import MaxOver
from odesim.symbolic.system import System

FUNCTIONS: dict[str, Any] = {
    "exp": math.exp, "log": math.log, "tanh": math.tanh, "erf": math.erf, "sin": math.sin, "cos": math.cos, "Abs": abs,
    "sinh": math.sinh, "cosh": math.cosh, "asin": math.asin, "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh,
    "erfc": math.erfc, "sinc": lambda x: math.sin(x) / x,
    "LambertW": lambda x: special.lambertw(x).real,
    "Mod": lambda u, q: u % q, "binomial": lambda n, k: math.comb(int(n), int(k)),
    "sign": lambda x: float(x > 0) - float(x < 0), "floor": math.floor, "ceiling": math.ceil,
    "Max": max, "Min": min, "KroneckerDelta": lambda a, b: float(a == b),
    "re": float, "And": lambda *x: all(x), "Or": lambda *x: any(x), "Not": lambda x: not x, "ITE": lambda c, yes, no: yes if c else no,
}  # fmt: skip


def value(e: Any, env: Mapping[Any, Any]) -> Any:
    """e with the names in env: numbers, arrays and indices; summed indices stand there as symbols."""
    if isinstance(e, Indexed) and isinstance(e.base, Layer) and e.base.name not in env:
        return of_layer(e.base, [int(value(i, env)) for i in e.indices], env)
    if isinstance(e, Indexed) and isinstance(e.base, Value):
        return env[e.base.name]
    if isinstance(e, Indexed):
        a, places = env[str(e.base.label)], [int(value(i, env)) for i in e.indices]
        beyond = any(isinstance(i, Padded) and not 0 <= at < n for i, at, n in zip(e.indices, places, np.shape(a), strict=True))
        return 0.0 if beyond else a[tuple(places)]
    if isinstance(e, Symbol):
        return env[e] if e in env else env[e.name]
    if isinstance(e, Neighbour):
        i, c, n = (int(value(a, env)) for a in e.args)
        return (i + c) % n if isinstance(e, Wrapped) else min(max(i + c, 0), n - 1) if isinstance(e, Clipped) else i + c
    if isinstance(e, sp.Sum | MaxOver):
        ranges = [range(int(value(low, env)), int(value(high, env)) + 1) for _, low, high in reversed(e.limits)]
        indices = [k for k, _, _ in reversed(e.limits)]
        terms = [value(e.function, {**env, **dict(zip(indices, at, strict=True))}) for at in itertools.product(*ranges)]
        return math.fsum(terms) if isinstance(e, sp.Sum) else max(terms)
    if isinstance(e, Inside):
        i, c, n = (value(a, env) for a in e.args)
        return 0 <= i + c < n
    if isinstance(e, Weighted):
        weight = value(e.args[0], env)
        return weight * math.exp(value(e.args[1], env)) if weight else 0.0
    if isinstance(e, XLogY | Share):
        x, y = (value(a, env) for a in e.args)
        return 0.0 if x == 0 and y <= 0 else x * math.log(y) if isinstance(e, XLogY) else x / y
    if isinstance(e, Counted):
        return value(e.args[1], env) if value(e.args[0], env) else -math.inf
    if isinstance(e, sp.Piecewise):
        return next(value(x, env) for x, condition in e.args if value(condition, env))
    if e.is_Relational:
        return bool(e.func(*(sp.Float(value(a, env), 17) for a in e.args)))
    if e in (sp.true, sp.false):
        return bool(e)
    if e.is_Add:
        return math.fsum(value(a, env) for a in e.args)
    if e.is_Mul:
        return math.prod(value(a, env) for a in e.args)
    if e.is_Pow:
        return float(value(e.args[0], env)) ** value(e.args[1], env)
    if e.is_number:
        return float(e)
    return FUNCTIONS[type(e).__name__](*(value(a, env) for a in e.args))


def of_layer(layer: Layer, places: list[int], env: Mapping[Any, Any]) -> Any:
    """An element of a layer; of one of inverses, from the whole matrix."""
    if not isinstance(layer, Inverse):
        return value(layer.definition, {**env, **dict(zip(layer.axes, places, strict=False))})
    n = range(int(value(sp.sympify(layer.shape[-1]), env)))
    A = [[value(layer.definition, {**env, **dict(zip(layer.along, (*places[:-2], i, j), strict=True))}) for j in n] for i in n]
    return np.linalg.inv(A)[tuple(places[-2:])]


def right_side(system: System, env: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """{state: dv/dt} of a System with sizes, parameters, states and t in env."""
    out = {}
    for key, rhs in system.equations.items():
        indices = key_indices(key)
        shape = tuple(int(value(sp.sympify(system.axes[i]), env)) for i in indices)
        a = np.empty(shape)
        for at in np.ndindex(*shape):
            a[at] = value(rhs, {**env, **{i.name: n for i, n in zip(indices, at, strict=True)}})
        out[str(key.base.label) if isinstance(key, Indexed) else key.name] = a
    return out


__all__ = ["IndexedBase", "right_side", "value"]
