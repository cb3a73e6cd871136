"""Programs of several members side by side: neighbours in memory are the same number of two members, so that vectors hold members."""

from dataclasses import replace

from odesim.ir.program import Program, Statement
from odesim.targets.matrix_products import turned
from odesim.transforms.lanes import is_lane


def along_lanes(program: Program) -> Program:
    """The Program with the lane as the last axis of every temporary, and sums of products of two members' arrays as plain sums.

    r0[l, i, j] = sum_k Z[l, i, k] * U[l, k, j]  ->  r0[i, j, l] = ..., which loops over k outside of l. A program without lanes stays.
    """
    lanes = {i for i, extent in program.extents.items() if is_lane(extent)}
    if not lanes:
        return program
    fixed = {name for s in program.statements() if s.op == "inverse" for name in (s.name, *s.reads())} | set(program.outputs)
    orders = {
        s.name: [*(d for d, i in enumerate(s.free) if i not in lanes), *(d for d, i in enumerate(s.free) if i in lanes)]
        for s in program.statements()
        if s.name not in fixed
    }

    def plain(s: Statement) -> Statement:
        both = s.op == "dot" and all(lanes & f.free_symbols for f in s.body.args)
        return replace(s, op="sum") if both else s

    return replace(program, passes=tuple(tuple(plain(turned(s, orders)) for s in group) for group in program.passes))
