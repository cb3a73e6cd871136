"""What a right-hand side and a stiff step cost, in nanoseconds of a usual core, from counts alone: the same on every machine.

They serve to choose between methods, so that factors of two do not matter; the constants were fitted to the shipped models.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from sympy import Basic, Function, Indexed, Piecewise, Pow, Symbol

from odesim.codegen.extents import extents
from odesim.codegen.jacobian.linearization import BoundLinear
from odesim.codegen.jacobian.plan import Product
from odesim.symbolic.program import Program

CALL, OPERATION = 400.0, 0.3  # of compiled code: a call of the right-hand side, and an operation on one entry
STATEMENT, ENTRY = 15_000.0, 1.0  # of numpy: a statement, and an operation on one entry
PRODUCT = 60_000.0  # of a product of the chain rule in numpy, without its terms
SOLVE = 20_000.0  # of one linear system, without its arithmetic
STEP = 300_000.0  # of a stiff step in Python, beside what is counted
DERIVE = 1.5e6  # for each operation that is differentiated, once
FLOP = 0.1  # of LAPACK


def operations(e: Basic) -> int:
    """Operations in an expression on one entry: a function counts as ten."""
    own = 0
    if isinstance(e, Indexed) or not e.args:
        return own
    if isinstance(e, Pow):
        own = 1 if e.exp.is_Integer else 10
    elif isinstance(e, Function) and not isinstance(e, Piecewise):
        own = 10
    else:
        own = len(e.args) - 1
    return own + sum(map(operations, e.args))


def entries(program: Program, sizes: Mapping[str, int]) -> dict[Symbol, int]:
    """How many values each index has."""
    given: dict[Symbol, Any] = dict(program.extents)
    return dict(zip(given, extents(tuple(given.values()), sizes), strict=True))


def counted(program: Program, sizes: Mapping[str, int]) -> tuple[int, float]:
    """(statements, operations on entries) of a Program."""
    many, statements, total = entries(program, sizes), 0, 0.0
    for s in program.statements():
        statements += 1
        total += prod(many[i] for i in s.loops) * (operations(s.body) + 1)
    return statements, total


def right_side(program: Program, sizes: Mapping[str, int], backend: str) -> float:
    """One right-hand side."""
    statements, total = counted(program, sizes)
    return CALL + OPERATION * total if backend == "numba" else STATEMENT * (statements + 3) + ENTRY * total


def derivation(program: Program) -> float:
    """Deriving the Jacobian of a right-hand side, once."""
    return DERIVE * sum(1 + operations(s.body) for s in program.statements())


def stiff_step(bound: BoundLinear, stages: int, right: float) -> float:
    """One step of a Rosenbrock method that is driven from Python. Raises CodegenError where the Jacobian is too large."""
    statements, total = counted(bound.linear.derivatives.program, bound.sizes)
    chain, n = bound.chain, bound.layout.size
    jacobian = STATEMENT * statements + ENTRY * total
    for _, products in chain.plan.steps:
        for product in products:
            jacobian += PRODUCT + ENTRY * terms(product, chain)
    p, R = chain.width, chain.rank
    if chain.plan.along is None:
        solver, solve = FLOP * 2 / 3 * n**3 + 3 * ENTRY * n * n, SOLVE + FLOP * 2 * n * n
    else:
        solver = 5 * SOLVE + ENTRY * n * (3 * p * p + 2 * R * R) + FLOP * R**3
        # a residual, and at least one refinement
        solve = (SOLVE + 2 * ENTRY * n) if p == 1 and not R else 15 * SOLVE + ENTRY * n * (20 + 8 * (p + R))
    return STEP + jacobian + solver + (stages + 1) * (solve + right + ENTRY * n * stages)


def terms(product: Product, chain: Any) -> int:
    """Terms of one product of the chain rule."""
    letters = set(product.text.replace(",", "").replace("->", ""))
    loops = len(product.link.statement.loops)
    many = prod(chain.extents[i] for i in product.link.statement.loops)
    behind = len(letters) - loops
    width = chain.width if product.kind.startswith("(") else chain.rank
    return many * (max(width, 1) if behind > 0 else 1)
