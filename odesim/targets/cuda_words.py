"""The vocabulary of C++ in generated kernels: types, numbers, and operations common to both languages."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf, isnan
from typing import Any

from odesim.base.errors import CodegenError

INT, REAL, SINGLE, TRUTH = "long long", "double", "float", "bool"
FUNCTION = "function "  # and its name: the type of an argument that is one
ORDER = (TRUTH, INT, SINGLE, REAL)
RESERVED = frozenset((
    "alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char", "char16_t", "char32_t",
    "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr",
    "constinit", "decltype", "default", "delete", "do", "double", "dynamic_cast", "enum", "explicit", "export", "extern", "false",
    "float", "friend", "goto", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not_eq", "nullptr", "operator",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "typedef", "typeid",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "xor", "xor_eq", "EOF", "INFINITY", "MAXFLOAT",
    "NAN", "NULL", "alloca", "fabs", "fma", "linux", "restrict", "rint", "stderr", "stdin", "stdout", "team", "typeof", "typeof_unqual",
    "unix",
))  # fmt: skip
"""Keywords, those of C (exports) too, macros, and what a text calls by these names."""
OURS = re.compile(r"(odesim|ODESIM|elementary|circular|special|stages|M|FP|HUGE)_\w+")
"""Names of our own functions, and of more macros."""


@dataclass(frozen=True)
class Typed:
    """A C++ expression with its type; type is a tuple of types if a function returns several values."""

    type: Any
    text: str


def named(name: str) -> str:
    """A variable's name in C++: a reserved word gets one more underscore, int -> int_ and so int_ -> int__."""
    stem = name.rstrip("_")
    return f"{name}_" if stem in RESERVED or OURS.fullmatch(stem) else name


def is_pointer(kind: str) -> bool:
    return kind.endswith("*")


def is_function(kind: str | None) -> bool:
    return kind is not None and kind.startswith(FUNCTION)


def pointee(kind: str) -> str:
    """The element type of an address of this type. Raises CodegenError if the type is no address."""
    if not is_pointer(kind):
        raise CodegenError(f"{kind} has no elements")
    return kind[:-1].removeprefix("volatile ")


def joined(a: str, b: str) -> str:
    """The common type of several values, as numba finds it. Raises CodegenError if there is none."""
    if a == b:
        return a
    if {a, b} == {INT, SINGLE}:
        return REAL
    if a in ORDER and b in ORDER:
        return max(a, b, key=ORDER.index)
    raise CodegenError(f"a variable cannot be both {a} and {b}")


def literal(x: Any) -> Typed:
    """A number as a C++ literal with the same bits."""
    if isinstance(x, bool):
        return Typed(TRUTH, "true" if x else "false")
    if isinstance(x, int):
        return Typed(INT, f"{int(x)}LL" if x >= -(2**63) + 1 else f"({x + 1}LL - 1LL)")
    if isinstance(x, float):
        if isnan(x):
            return Typed(REAL, "ODESIM_NAN")
        if isinf(x):
            return Typed(REAL, "ODESIM_INF" if x > 0 else "(-ODESIM_INF)")
        return Typed(REAL, repr(x) if x >= 0 else f"({x!r})")
    raise CodegenError(f"no number: {x!r}")


def _same(word: str) -> Callable[[list[Typed]], Typed]:
    """A function with the same name in both languages, also for float."""
    return lambda args: Typed(_real(args), f"{word}({', '.join(_no_int(a).text for a in args)})")


def _no_int(a: Typed) -> Typed:
    """a, as a double where it is an integer: C++ asks which function of real numbers is meant."""
    return Typed(REAL, f"((double){a.text})") if a.type == INT else a


def in_double(a: Typed) -> Typed:
    """a as a double, as our intrinsics take every number."""
    return Typed(REAL, f"((double){a.text})") if a.type == SINGLE else a


def _wide(word: str) -> Callable[[list[Typed]], Typed]:
    """A function of doubles alone, with the same name in both languages."""
    return lambda args: Typed(REAL, f"{word}({', '.join(_no_int(in_double(a)).text for a in args)})")


def _real(args: list[Typed]) -> str:
    return SINGLE if all(a.type == SINGLE for a in args) else REAL


def _cast(kind: str) -> Callable[[list[Typed]], Typed]:
    return lambda args: Typed(kind, f"(({kind}){args[0].text})")


def _abs(args: list[Typed]) -> Typed:
    (a,) = args
    return Typed(INT, f"({a.text} < 0 ? -{a.text} : {a.text})") if a.type == INT else Typed(_real(args), f"fabs({a.text})")


def _select(args: list[Typed]) -> Typed:
    test, a, b = map(in_double, args)
    return Typed(joined(a.type, b.type), f"({test.text} ? {a.text} : {b.text})")


def _least(sign: str) -> Callable[[list[Typed]], Typed]:
    """Python's min or max of two: the second one only if it is strictly smaller or larger."""
    return lambda args: Typed(
        joined(args[0].type, args[1].type), f"({args[1].text} {sign} {args[0].text} ? {args[1].text} : {args[0].text})"
    )


BUILTINS: dict[str, Callable[[list[Typed]], Typed]] = {
    "abs": _abs,
    "sqrt": _same("sqrt"),
    "fma": _wide("fma"),
    "rint": _wide("rint"),
    "floor": _wide("floor"),
    "bits": lambda args: Typed(INT, f"__double_as_longlong({args[0].text})"),
    "from_bits": lambda args: Typed(REAL, f"__longlong_as_double({args[0].text})"),
    "select": _select,
    "min": _least("<"),
    "max": _least(">"),
    "float": _cast(REAL),
    "int": _cast(INT),
    "int64": _cast(INT),
    "float32": _cast(SINGLE),
    "float64": _cast(REAL),
    "ints": _cast(f"{INT}*"),
    "doubles": _cast(f"{REAL}*"),
    "floats": _cast(f"{SINGLE}*"),
}


def call_builtin(name: str, args: list[Typed]) -> Typed:
    """A call of a builtin that has another name in C++. Raises CodegenError for an unknown one."""
    if name not in BUILTINS:
        raise CodegenError(f"no C++ form of the function {name}")
    return BUILTINS[name](args)
