"""Assembles a CUDA source from translated functions: the prelude, the functions, and the kernels that call them.

The same text is compiled for a GPU by NVRTC and for a CPU by any C++ compiler. A header gives CUDA's words a meaning there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odesim.codegen.cuda.scope import ModuleScope

PRELUDE = """
#ifdef ODESIM_HOST
#include "odesim_host.h"
#endif
#ifndef ODESIM_PAUSE
#define ODESIM_PAUSE() __nanosleep(40)
#endif
#define ODESIM_NAN __longlong_as_double(0x7ff8000000000000LL)
#define ODESIM_INF __longlong_as_double(0x7ff0000000000000LL)
__device__ __forceinline__ long long odesim_power(long long x, long long n) { long long y = 1; for (; n > 0; --n) y *= x; return y; }
""".strip("\n")


@dataclass(frozen=True)
class Driver:
    """The integrator: the scope of its function run(address of a table), and places in that table: K, ORDER, COEF, N, SUMS, of laws.

    sums: {name: (rows, numbers)} of its sums over components, as their names. A term is the function NAME_of of a component of a
    combination of stages and of each row, and of the numbers.
    """

    scope: ModuleScope
    places: Mapping[str, int]
    sums: Mapping[str, tuple[Sequence[str], Sequence[str]]]


def cuda_source(about: str, functions: str, *kernels: str) -> str:
    """The source file: a comment that says what it is, the prelude, the functions, the kernels."""
    return "\n\n".join([f"// {about}", PRELUDE, functions, *kernels]) + "\n"


__all__ = ["PRELUDE", "Driver", "cuda_source"]
