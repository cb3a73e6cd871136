"""numba's front end without the work that scalar code on addresses does not need: half the time of a compilation.

The passes left out inline closures, rewrite array expressions and constants, and look for literals; the code here has
none of these. Types and code of operators on plain numbers are looked up once, not at every operation.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

NAMES = ("add", "sub", "mul", "truediv", "neg", "lt", "le", "gt", "ge", "eq", "ne", "iadd", "isub", "imul", "getitem")
OPERATORS = frozenset(getattr(operator, name) for name in NAMES)


@contextmanager
def scalar_front_end() -> Iterator[None]:
    """A context in which numba compiles with this front end. The caller holds numba's compiler lock."""
    from numba.core import base, compiler, event, postproc
    from numba.core.targetconfig import TargetConfig
    from numba.core.types.functions import BaseFunction

    changes: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (compiler.Compiler, "define_pipelines", lambda _: _pipelines),
        (base, "_has_loc", cache),  # whether an implementation takes a location: inspect is slow
        (BaseFunction, "get_call_type", _typed),
        (base.BaseContext, "get_function", _implemented),
        (TargetConfig, "__eq__", _equal),
        (TargetConfig, "__hash__", _hash),
        (postproc.PostProcessor, "run", _without_lifetimes),
        *((event, name, _nothing) for name in ("start_event", "end_event")),  # nobody listens
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    try:
        for place, name, change in changes:
            setattr(place, name, change(getattr(place, name)))
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _equal(original: Any) -> Any:
    """A replacement of the comparison of two sets of compiler flags: those that are set alike are equal."""
    return lambda self, other: (type(other) is type(self) and self._values == other._values) or original(self, other)


def _hash(original: Any) -> Any:
    """A replacement of the hash of compiler flags, which is that of their names: it is computed once."""
    found: dict[type, int] = {}

    def hash_of(self: Any) -> int:
        if type(self) not in found:
            found[type(self)] = original(self)
        return found[type(self)]

    return hash_of


def _without_lifetimes(original: Any) -> Any:
    """A replacement of the analysis of variables between passes: how long each lives is computed where it is asked for, at the end."""
    from numba.core.postproc import VariableLifetime
    from numba.core.transforms import canonicalize_cfg

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir.is_generator:
            return original(self, emit_dels, extend_lifetimes)  # type: ignore[no-any-return]
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime, self.func_ir.generator_info = VariableLifetime(self.func_ir.blocks), None
        return None

    return run


def _nothing(original: Any) -> Any:
    """A replacement of any function that does nothing."""
    return lambda *arguments, **options: None


def _pipelines(self: Any) -> list[Any]:
    """The passes of scalar code."""
    from numba.core import typed_passes, untyped_passes
    from numba.core.compiler_machinery import PassManager

    passes = PassManager("scalar")
    for name in ("TranslateByteCode", "FixupArgs", "IRProcessing", "DeadBranchPrune", "GenericRewrites", "ReconstructSSA"):
        passes.add_pass(getattr(untyped_passes, name), name)
    for name in ("NopythonTypeInference", "PreLowerStripPhis", "IRLegalization", "NativeLowering", "NoPythonBackend"):
        passes.add_pass(getattr(typed_passes, name), name)
    passes.finalize()
    return [passes]


def _plain(key: Any, args: Any) -> Any:
    """The types of an operator's arguments, a literal by its type; None where one is not a number, or all are literals."""
    from numba.core import types

    if key not in OPERATORS:
        return None
    if all(isinstance(kind, types.Literal) for kind in args):
        return None
    kinds = tuple(kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind for kind in args)
    numbers = (types.Float, types.Integer, types.Boolean, types.CPointer)
    return kinds if all(isinstance(k, numbers) and not isinstance(k, types.Literal) for k in kinds) else None


def _typed(original: Any) -> Any:
    """A replacement of numba's get_call_type that remembers the signatures of operators on numbers."""
    found: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, keywords: Any) -> Any:
        kinds = _plain(self.typing_key, args) if not keywords else None
        if kinds is None:
            return original(self, context, args, keywords)
        if (self, kinds) not in found:
            found[self, kinds] = original(self, context, kinds, keywords)
        return found[self, kinds]

    return get_call_type


def _implemented(original: Any) -> Any:
    """A replacement of numba's get_function that remembers the code of operators on numbers."""
    found: dict[Any, Any] = {}

    def get_function(self: Any, function: Any, signature: Any, **options: Any) -> Any:
        key = getattr(function, "typing_key", None)
        if options or _plain(key, signature.args) is None:
            return original(self, function, signature, **options)
        if (self, key, signature) not in found:
            found[self, key, signature] = original(self, function, signature)
        return found[self, key, signature]

    return get_function
