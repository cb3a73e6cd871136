"""Symbolic shapes and loops as numbers: lengths for given sizes, operations counted, and what they cost.

Costs are in nanoseconds of a typical core. They come from counts of operations alone, so they are the same on every machine. They serve
to choose between methods: a factor of two does not matter. The constants were fitted to the shipped models.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any

import sympy as sp
from sympy import Basic, Function, Indexed, Piecewise, Pow, Symbol

from odesim.base.backends import find_backend
from odesim.base.errors import CodegenError
from odesim.ir.fronts import Entries
from odesim.ir.jacobian import Chain, Product
from odesim.ir.program import Program
from odesim.ir.sparse_jacobian import SparseChain
from odesim.symbolic.indices import Clipped, Padded, Wrapped

# of compiled code within a compiled run: a statement, and an operation on one entry, which runs in vectors. Measured on the shipped
# models and on benchmarks/problems.py: 50 to 170 a statement, 0.05 to 0.2 an operation. Taken five times too large, as a call from Python
# is, they sent `auto` to rodas5p on the 1-D Brusselator, 258 ms for 40
LOOP, OPERATION, FUNCTION = 50.0, 0.06, 100
# to see whether a neighbour is beyond an end: on grids in one and two dimensions .25 ns each with 0 there, .4 to .5 on rings and edges
BEYOND = {Padded: 2, Wrapped: 6, Clipped: 6}
STATEMENT, ENTRY = 15_000.0, 1.0  # of numpy: a statement, and an operation on one entry
PRODUCT = 60_000.0  # of a product of the chain rule in numpy, without its terms
SOLVE = 20_000.0  # of one linear system, without its arithmetic
DIRECTIONS = 30  # of a step whose linear systems are solved by products with the Jacobian: measured 2 to 190, by the spread of rates
STEP = 100_000.0  # of a stiff step whose linear systems are solved in Python, beside what is counted
# for each operation that is differentiated, a tenth of the 1 to 2 ms that it takes: that is once, and a System is run again and again
DERIVE = 1.5e5
FLOP = 0.1  # of LAPACK
# of compiled elimination: an entry that is put in its place, a front, an operation within it; what a stage calls
PLACE, FRONT, PIVOT, CALL = 2.0, 50.0, 0.2, 150.0


def extents(shape: tuple[Any, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A symbolic shape as a tuple of ints. Raises CodegenError unless each length is a whole number plus multiples of sizes."""
    return tuple(const + sum(factor * sizes[name] for name, factor in terms) for const, terms in map(_affine, shape))


@lru_cache(maxsize=4096)
def _affine(e: Any) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The constant and the factors of a length: 2*L - 1 -> (-1, (("L", 2),))."""
    # affine lengths only: everything beyond, such as L*K or L/2, would have to be asked of sympy at every binding
    parts = sp.expand(sp.sympify(e)).as_coefficients_dict()
    const = parts.pop(sp.S.One, sp.S.Zero)
    if not all(s.is_Symbol and f.is_Integer for s, f in parts.items()):
        raise CodegenError(f"extent {e} is not a whole number plus multiples of sizes")
    return int(const), tuple(sorted((s.name, int(f)) for s, f in parts.items()))


@lru_cache(maxsize=4096)
def operations(e: Basic, function: int = 10) -> int:
    """The number of operations in an expression for one entry; a function counts as `function`, ten in numpy."""
    if isinstance(e, Indexed) or not e.args:
        return 0
    if isinstance(e, Pow):
        outer = 1 if e.exp.is_Integer else function
    elif isinstance(e, Function) and not isinstance(e, Piecewise):
        outer = function
    else:
        outer = len(e.args) - 1
    return outer + sum(operations(arg, function) for arg in e.args)


@lru_cache(maxsize=4096)
def neighbours(e: Basic) -> int:
    """The operations that neighbours in an expression take, of one entry of compiled code."""
    return sum(BEYOND.get(type(i), 0) for x in e.atoms(Indexed) for i in x.indices)


def index_lengths(program: Program, sizes: Mapping[str, int]) -> dict[Symbol, int]:
    """{index: number of its values}."""
    symbolic: dict[Symbol, Any] = dict(program.extents)
    return dict(zip(symbolic, extents(tuple(symbolic.values()), sizes), strict=True))


def count_operations(program: Program, sizes: Mapping[str, int], function: int = 10) -> tuple[int, float]:
    """The number of statements and the number of operations on entries of a Program; a function counts as `function`."""
    lengths, statements, total = index_lengths(program, sizes), 0, 0.0
    for s in program.statements():
        statements += 1
        each = operations(s.body, function) + (neighbours(s.body) if function == FUNCTION else 0) + 1
        total += prod(lengths[i] for i in s.loops) * each
    return statements, total


def right_side_cost(program: Program, sizes: Mapping[str, int], backend: str) -> float:
    """The cost of one right-hand side."""
    if find_backend(backend).compiles:
        statements, total = count_operations(program, sizes, FUNCTION)
        return LOOP * statements + OPERATION * total
    statements, total = count_operations(program, sizes)
    return STATEMENT * (statements + 3) + ENTRY * total


def derivation_cost(program: Program) -> float:
    """The cost of deriving the Jacobian of a right-hand side symbolically, once."""
    return DERIVE * sum(1 + operations(s.body) for s in program.statements())


def stiff_step_cost(slopes: Program, chain: Chain | SparseChain, sizes: Mapping[str, int], stages: int, right: float) -> float:
    """The cost of one step of a Rosenbrock method whose linear systems are solved from Python.

    slopes: the Program of the slopes that the chain rule combines. right: the cost of a right-hand side.
    """
    statements, total = count_operations(slopes, sizes)
    n = chain.layout.size
    jacobian = STATEMENT * statements + ENTRY * total
    if isinstance(chain, SparseChain):
        return STEP + jacobian + 5 * SOLVE + FLOP * chain.cost + (stages + 1) * (SOLVE + right + ENTRY * n * (stages + 20))
    for _, products in chain.plan.steps:
        for product in products:
            jacobian += PRODUCT + ENTRY * product_terms(product, chain)
    p, R = chain.width, chain.rank
    if chain.plan.block_extent is None:
        solver, solve = FLOP * 2 / 3 * n**3 + 3 * ENTRY * n * n, SOLVE + FLOP * 2 * n * n
    else:
        solver = 5 * SOLVE + ENTRY * n * (3 * p * p + 2 * R * R) + FLOP * R**3
        # a residual, and at least one refinement
        solve = (SOLVE + 2 * ENTRY * n) if p == 1 and not R else 15 * SOLVE + ENTRY * n * (20 + 8 * (p + R))
    return STEP + jacobian + solver + (stages + 1) * (solve + right + ENTRY * n * stages)


def product_step_cost(products: Program, sizes: Mapping[str, int], n: int, stages: int, right: float) -> float:
    """The cost of one step of a Rosenbrock method whose linear systems are solved by products with the Jacobian of n states."""
    statements, total = count_operations(products, sizes, FUNCTION)
    # each direction is made orthogonal, twice, to those before it
    direction = LOOP * statements + OPERATION * total + 3 * SOLVE + FLOP * 4 * DIRECTIONS * n
    return STEP + DIRECTIONS * direction + (stages + 1) * (SOLVE + right + ENTRY * n * stages)


def eliminated_step_cost(slopes: Program, entries: Entries, sizes: Mapping[str, int], stages: int, right: float) -> float:
    """The cost of one step of a Rosenbrock method whose Jacobian is eliminated by compiled code. right: the cost of a right-hand side."""
    statements, total = count_operations(slopes, sizes, FUNCTION)
    n, fronts = entries.n, entries.fronts
    count = len(fronts.widths)
    factor = PLACE * len(entries.rows) + FRONT * count + PIVOT * fronts.operations
    solve = FRONT / 4 * count + 3 * PIVOT * fronts.numbers + 0.3 * n * (stages + 10) + CALL
    return LOOP * statements + OPERATION * total + factor + (stages + 1) * (right + solve)


def product_terms(product: Product, chain: Chain) -> int:
    """The number of terms in one product of the chain rule."""
    letters = set(product.text.replace(",", "").replace("->", ""))
    loops = len(product.dependence.statement.loops)
    iterations = prod(chain.extents[i] for i in product.dependence.statement.loops)
    trailing = len(letters) - loops
    width = chain.width if product.kind.startswith("(") else chain.rank
    return iterations * (max(width, 1) if trailing > 0 else 1)
