"""Right-hand sides and expressions of a System as straight-line formulas, for given sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from odesim.base.errors import CodegenError
from odesim.ir.program import Program
from odesim.ir.scalars import Code, Operand, printed, real_of, words_of
from odesim.ir.sizes import extents
from odesim.symbolic.system import System
from odesim.targets.blocks import BLOCK, LATE
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.numba_text import ROWS, Kernel, RightSide
from odesim.targets.unroll import Interpreter
from odesim.targets.unrolled_calls import MOST, ZERO, make_view


@dataclass(frozen=True)
class Formulas:
    """Straight-line code that computes outputs from t, states y0, y1, ... and parameters p0, p1, ...; both flat, in the System's order.

    values: {name of a parameter of reals: its first p}. dtype: of states, outputs and parameters; t is float64, and so are the
    parameters `doubles`, which are no arrays. late: how many of the stages a kernel adds to a state without rounding it between
    them; it rounds after every four of the others. shifts: names of what has no derivatives.
    """

    code: Code
    outputs: tuple[str, ...]
    states: int
    values: dict[str, int]
    count: int
    dtype: str = "float64"
    doubles: frozenset[int] = frozenset()
    late: int = 0
    shifts: frozenset[str] = frozenset()

    @property
    def lines(self) -> list[str]:
        """The code as lines of Python."""
        return printed(self.code)

    @cached_property
    def words(self) -> frozenset[str]:
        """All names and functions in the code."""
        operands: list[Operand] = [*self.code.values(), *self.outputs]
        return frozenset(word for operand in operands for word in words_of(operand))

    def reads(self, letter: str) -> list[int]:
        """Indices of the states (y) or parameters (p) that the code reads."""
        return sorted(int(word[1:]) for word in self.words if word[0] == letter and word[1:].isdigit())


def write_out(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The right-hand side as straight-line code, as in strict mode. whole: the values of integer parameters.

    Raises CodegenError where the system is too large.
    """
    form = make_loop_plan(system, program, strict=True)
    kernel = RightSide(system, form, dtype)
    blocks = -(-max([_states(system, sizes), *extents(tuple(program.extents.values()), sizes)]) // BLOCK)
    found = _written(
        kernel,
        sizes,
        whole,
        blocks,
        lambda n, state: {
            **{"x_": make_view([*state], (n,))},
            **{"k_": make_view([ZERO] * ROWS * n, (ROWS, n)), "rows_": make_view([0] * ROWS, (ROWS,)), "coef_": None, "ns_": 0},
            **{"keep_": 1, "early_": None, "late_": make_view([0] * LATE, (LATE,)), "amounts_": make_view([ZERO] * LATE, (LATE,))},
            **{"base_": make_view([ZERO] * BLOCK, (BLOCK,))},
        },
        dtype,
    )
    return replace(found, late=LATE if form.local else 0)


def write_values(system: System, program: Program, sizes: Mapping[str, int], whole: Mapping[str, Any], dtype: str = "float64") -> Formulas:
    """The outputs of a program of expressions as straight-line code, with the operations of its kernel in the same order."""
    blocks = -(-max([1, *extents(tuple(program.extents.values()), sizes)]) // BLOCK)
    return _written(Kernel("values", system, program, dtype), sizes, whole, blocks, lambda n, state: {}, dtype)


def _states(system: System, sizes: Mapping[str, int]) -> int:
    return sum(prod(extents(shape, sizes)) for shape in system.shapes.values())


def _written(
    kernel: Kernel,
    sizes: Mapping[str, int],
    whole: Mapping[str, Any],
    blocks: int,
    more: Callable[[int, list[str]], dict[str, Any]],
    dtype: str = "float64",
) -> Formulas:
    """The straight-line code of a kernel. more: arguments beyond those of every kernel, for n states."""
    own, wide = ("", "") if dtype == "float64" else (dtype, "float64")
    run = Interpreter(f"{kernel.definition()}\n", frozenset(s.name for s in kernel.nests.program.statements() if s.slopes))
    n, total = _states(kernel.system, sizes), sum(prod(extents(shape, sizes)) for _, shape in kernel.outputs())
    if max(n, total) > MOST:
        raise CodegenError(f"written out the system has more than {MOST} operations")
    values, given, count_, doubles = {}, dict[str, Any](), 0, set[int]()
    for p in kernel.system.params:
        shape = extents(p.shape, sizes)
        size = prod(shape)
        if p.integer:
            cells: list[Any] = [int(x) for x in whole[p.name].ravel()] if shape else [int(whole[p.name])]
        else:
            values[p.name] = count_
            cells = [f"p{count_ + k}" for k in range(size)]
            doubles |= set() if shape else {count_}
            count_ += size
        given[p.name] = make_view(cells, shape) if shape else cells[0]
    state = [f"y{k}" for k in range(n)]
    out = make_view([ZERO] * total, (total,), cast=own)
    slots = kernel.nests.scratch_blocks
    temporaries = {name: extents(shape, sizes) for name, shape in kernel.temporaries.items()}
    env = {
        **sizes,
        **given,
        **{name: make_view([ZERO] * prod(shape), shape, cast=own) for name, shape in temporaries.items()},
        **{"t": "t", "y_": make_view([*state], (n,), cast=own), "out_": out},
        **{"work_": make_view([ZERO] * slots * BLOCK, (slots, BLOCK), cast=wide)},
        **{"part_": make_view([ZERO] * slots * blocks, (slots, blocks), cast=wide)},
        **more(n, state),
    }
    run.run(kernel.name, env)
    outputs = tuple(str(real_of(run.calls.named(v))) for v in out.values())
    return Formulas(run.calls.code, outputs, n, values, count_, dtype, frozenset(doubles), shifts=frozenset(run.calls.shifts))
