"""A fused loop: it computes the state from the stages and the right-hand side in one pass, so that memory and arithmetic overlap.

The state is computed AHEAD elements before it is used. For one element, loads, sum and exponential form such a long chain that a
processor has few elements in flight. With the distance, loads of a later element run during the arithmetic of this one.
"""

from collections.abc import Sequence

from sympy import IndexedBase

from odesim.symbolic.indices import base_name
from odesim.targets.blocks import BLOCK, HERE, LATE, BlockLoop

AHEAD = 64
"""A number of elements, at least one iteration of the vectorised loop, so that no element is read before it is written."""


class FusedLoops:
    """The text of the fused loops, one for each even number of late stages, all with the same element function.

    constants: parameter arrays of which every stage contains a multiple; their factors are c0_, c1_, ...
    """

    def __init__(self, constants: Sequence[str]):
        self.constants = list(constants)
        self.definition = ""

    def setup(self, weights: str) -> list[str]:
        """The lines before the loop over blocks, which split the stages into early and late ones."""
        late = ", ".join(f"a{q}_" for q in range(LATE))
        return [
            f"    terms_, more_ = split_terms({weights}, ns_, early_, late_, amounts_)",
            f"    {late} = {', '.join(f'amounts_[{q}]' for q in range(LATE))}",
        ]

    def prologue(self) -> list[str]:
        """The lines at the start of a block: the memory of the state, and the value that it starts from."""
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
        """The lines of the loops over one block. It sets `definition`: the functions that compute and use an element of the state."""
        assert loop.state is not None and loop.value is not None
        i, number = loop.i.name, loop.number
        extra = [loop.view(IndexedBase(a, shape=(BLOCK,))[loop.i], f"block({a}, lo_, hi_)") for a in self.constants]
        weights = [f"c{q}_" for q in range(len(extra))]
        state = " + ".join(["value_", *(f"{c}*{loop.printer.text(a)}" for c, a in zip(weights, extra, strict=True))])
        lines = loop.body()
        place = f"{number}, {sum(line.startswith('store(') for line in lines)}, {HERE}, {i}"
        lines = [f"{loop.value} = reload({place})", *lines]
        arguments = ", ".join([HERE, *map(base_name, extra), *weights])
        arrays = [name for name in map(base_name, loop.arrays.values()) if any(f" {name}, " in line for line in lines)]
        used = ", ".join([HERE, *arrays, *loop.scalars()])
        self.definition = "\n".join(
            [
                *("@kernel", f"def form({i}, value_, {arguments}):", f"    store({place}, {state})", "", ""),
                *("@kernel", f"def element({i}, {used}):", *(f"    {line}" for line in lines)),
            ]
        )
        out = [*loop.views, f"ahead_ = min({AHEAD}, hi_ - lo_)"]
        for terms in range(0, LATE + 1, 2):
            first, later = (self._form(number, terms, at, arguments) for at in (i, f"{i} + {AHEAD}"))
            out += [
                f"{'if' if terms == 0 else 'elif'} terms_ == {terms}:",
                *(f"    for {i} in range(ahead_):", f"        {first}"),
                *(f"    for {i} in range(hi_ - lo_ - ahead_):", f"        {later}", f"        element({i}, {used})"),
            ]
        return [*out, f"for {i} in range(hi_ - lo_ - ahead_, hi_ - lo_):", f"    element({i}, {used})"]

    @staticmethod
    def _form(number: int, terms: int, at: str, arguments: str) -> str:
        """The call that computes the element `at` of the state from this number of stages."""
        stages = (f" + a{q}_*load({number}, k{q}_, {at})" for q in range(terms))
        return f"form({at}, load({number}, start_, {at}){''.join(stages)}, {arguments})"
