"""A loop that forms the state from the stages while it computes: memory and arithmetic at the same time.

The state is formed AHEAD elements before it is used. In one element after the other, loads, sum and exponential are a chain so long
that a processor has few of them in flight; apart, the loads of a later element run under the arithmetic of this one.
"""

from collections.abc import Sequence

from sympy import IndexedBase

from odesim.codegen.loops.blocks import BLOCK, HERE, LATE, BlockLoop
from odesim.symbolic.expr import base_name

AHEAD = 64
"""Elements; at least as many as one turn of a vectorised loop takes, so that none reads what it has yet to write."""


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
        """The loops over one block; the functions that form an element of the state and that use it become the definition."""
        assert loop.state is not None and loop.value is not None
        i, number = loop.i.name, loop.number
        extra = [loop.view(IndexedBase(a, shape=(BLOCK,))[loop.i], f"block({a}, lo_, hi_)") for a in self.constants]
        weights = [f"c{q}_" for q in range(len(extra))]
        state = " + ".join(["value_", *(f"{c}*{loop.printer.text(a)}" for c, a in zip(weights, extra, strict=True))])
        lines = loop.body()
        place = f"{number}, {sum(line.startswith('store(') for line in lines)}, {HERE}, {i}"
        lines = [f"{loop.value} = reload({place})", *lines]
        formed = ", ".join([HERE, *map(base_name, extra), *weights])
        arrays = [name for name in map(base_name, loop.arrays.values()) if any(f" {name}, " in line for line in lines)]
        used = ", ".join([HERE, *arrays, *loop.scalars()])
        self.definition = "\n".join(
            [
                *("@kernel", f"def form({i}, value_, {formed}):", f"    store({place}, {state})", "", ""),
                *("@kernel", f"def element({i}, {used}):", *(f"    {line}" for line in lines)),
            ]
        )
        out = [*loop.views, f"ahead_ = min({AHEAD}, hi_ - lo_)"]
        for terms in range(0, LATE + 1, 2):
            first, later = (self._form(number, terms, at, formed) for at in (i, f"{i} + {AHEAD}"))
            out += [
                f"{'if' if terms == 0 else 'elif'} terms_ == {terms}:",
                *(f"    for {i} in range(ahead_):", f"        {first}"),
                *(f"    for {i} in range(hi_ - lo_ - ahead_):", f"        {later}", f"        element({i}, {used})"),
            ]
        return [*out, f"for {i} in range(hi_ - lo_ - ahead_, hi_ - lo_):", f"    element({i}, {used})"]

    @staticmethod
    def _form(number: int, terms: int, at: str, formed: str) -> str:
        """The call that forms the element at this place from so many stages."""
        stages = (f" + a{q}_*load({number}, k{q}_, {at})" for q in range(terms))
        return f"form({at}, load({number}, start_, {at}){''.join(stages)}, {formed})"
