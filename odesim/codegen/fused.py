"""A loop that forms the state from the stages while it computes: memory and arithmetic at the same time."""

from collections.abc import Sequence

from sympy import IndexedBase, Symbol

from odesim.codegen.blocks import BLOCK, HERE, LATE, BlockLoop
from odesim.symbolic.expr import base_name


class FusedLoops:
    """The text of one loop for each even number of late stages, all around the same element function.

    constants: parameter arrays that every stage holds a multiple of; c0_, c1_, ... is what they count for.
    """

    def __init__(self, constants: Sequence[str]):
        self.constants = list(constants)
        self.definition = ""

    def setup(self, weights: str) -> list[str]:
        """Lines before the loop over blocks: which stages are early and which are late."""
        late = ", ".join(f"a{q}_" for q in range(LATE))
        return [
            f"    terms_, more_ = split_terms({weights}, ns_, early_, late_, amounts_)",
            f"    {late} = {', '.join(f'amounts_[{q}]' for q in range(LATE))}",
        ]

    def prologue(self) -> list[str]:
        """Lines at the head of a block: where the state goes, and what it starts from."""
        return [
            "at_ = lo_*keep_",
            f"{HERE} = block(y_, at_, at_ + hi_ - lo_)",
            "start_ = block(x_, lo_, hi_)",
            "if more_:",
            "    combine_block(x_, k_, rows_, early_, ns_, lo_, hi_, base_)",
            "    start_ = block(base_, 0, hi_ - lo_)",
            *(f"k{q}_ = row_block(k_, rows_[late_[{q}]], lo_, hi_)" for q in range(LATE)),
        ]

    def loops(self, loop: BlockLoop) -> list[str]:
        """The loops over one block, and the element function as definition."""
        assert loop.state is not None and loop.value is not None
        i, number, into = loop.i, loop.number, HERE
        weights = [Symbol(f"c{q}_", real=True) for q in range(len(self.constants))]
        extra = [loop.view(IndexedBase(a, shape=(BLOCK,))[i], f"block({a}, lo_, hi_)") for a in self.constants]
        arrays = [base_name(a) for a in loop.arrays.values()]
        given = Symbol("value_", real=True)
        state = given + sum(c * a for c, a in zip(weights, extra, strict=True))
        body = [f"{loop.value} = {loop.printer.text(given)}"] if not extra else []
        for c, a in zip(weights, extra, strict=True):
            first = "value_" if not body else str(loop.value)
            body.append(f"{loop.value} = {first} + {c}*{loop.printer.text(a)}")
        lines = [*body, *loop.body()]
        written = sum(line.startswith("store(") for line in lines)
        lines.append(f"store({number}, {written}, {into}, {i}, {loop.value})")
        numbers = sorted({*loop.scalars(), *(c.name for c in weights)} - {"value_"})
        assert state is not None
        arguments = ", ".join([i.name, "value_", into, *arrays, *numbers])
        self.definition = "\n".join(["@kernel", f"def element({arguments}):", *(f"    {line}" for line in lines)])
        out = list(loop.views)
        for terms in range(0, LATE + 1, 2):
            value = f"load({number}, start_, {i})"
            for q in range(terms):
                value = f"{value} + a{q}_*load({number}, k{q}_, {i})"
            call = ", ".join([i.name, value, into, *arrays, *numbers])
            out.append(f"{'if' if terms == 0 else 'elif'} terms_ == {terms}:")
            out += [f"    for {i} in range(hi_ - lo_):", f"        element({call})"]
        return out
