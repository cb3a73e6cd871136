"""Noise in written-out lanes: the normal numbers of a step, and the rates that a stage sees, as lines for lane l.

A block of random words is two numbers, for two steps of a channel. Lanes that take many steps without a look take them in pairs and draw
once for both. A step alone draws the block again and takes its own number of it: the same bits, wherever a look or a save falls.

A pair of steps draws the bits of all lanes before the first number. In one loop for both, the rounds and then the logarithm wait for
themselves, and a processor looks too few instructions ahead to begin the next lanes meanwhile: by two loops OU takes .76 of the time on an
Intel with registers of 512 bits, .75 with 256. A third loop, for the steps or for sine and cosine, gains nothing.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from odesim.base.parsing import margin
from odesim.stepper.lanes import Written
from odesim.stepper.statements import Do, Row
from odesim.stepper.tableau import Scheme


@dataclass(frozen=True)
class LaneNoise:
    """The noise of a kernel. rates: (number of a channel, the parameter that is its rate) of those that are read.

    length: the parameter that is the length of a step, or -1. pairs: two steps share their blocks; not where steps of the path are halved.
    """

    rates: tuple[tuple[int, int], ...]
    length: int
    pairs: bool


class NoisyLanes(Written):
    """Written-out lanes of a scheme. half: which of a pair of steps is printed; -1: any step, alone."""

    scheme: Scheme
    noise: LaneNoise
    half = -1

    def of(self, scheme: Scheme, noise: LaneNoise) -> "NoisyLanes":
        """These lanes, of a scheme and its noise."""
        self.scheme, self.noise = scheme, noise
        return self

    def _do(self, s: Do, stores: Collection[Row]) -> list[str]:
        if s.what == "draw":
            return self._draw(self._value(s.arguments[0])) if self.half < 0 else self._take()
        (stage, root, used), draws = (self._value(a) for a in s.arguments), self.scheme.draws
        a, b, *more = self.scheme.noise[int(stage)]
        number = f"{a!r} * {{0}} + {b!r} * xi1_{{1}}" if draws > 1 else "{0}"
        if any(more):
            number += " + ({!r} + {!r} * ({{0}} * {{0}} - 1.0) / 2.0 + {!r} * {{0}} * ({{0}} * {{0}} - 3.0) / 6.0)".format(*more)
        lines = [f"p{q} = {root} * ({number.format(f'xi0_{c}', c)})" for c, q in self.noise.rates]
        return lines + ([f"p{self.noise.length} = {used}"] if self.noise.length >= 0 else [])

    def _draws(self) -> list[tuple[int, int]]:
        """(kind, channel) of the numbers that a step takes."""
        return [(kind, c) for c, _ in self.noise.rates for kind in range(self.scheme.draws)]

    def _draw(self, steps: str) -> list[str]:
        """Lines that draw the numbers of a step after so many."""
        out = [f"count, who = whole({steps}), whole({self.at('member')})"]
        if not self.noise.pairs:
            arguments = f"count, halvings, {self.scheme.draws}"
            return out + [f"xi0_{c}, xi1_{c} = normals_of_path(key0, key1, who, {c}, {arguments})" for c, _ in self.noise.rates]
        return out + [f"xi{kind}_{c} = normal_of_step(key0, key1, who, {c}, {kind}, count)" for kind, c in self._draws()]

    def _take(self) -> list[str]:
        return [f"xi{kind}_{c} = both{kind}_{c}_{self.half}" for kind, c in self._draws()]

    def march(self, steps: str, one: Callable[[str], list[str]]) -> list[str]:
        """Lines of `ahead` steps of all lanes. steps: those that lane l has done; one(k): the lines of step number k after them."""
        self.places = {row: place for row, place in self.places.items() if row != "steps"}
        self.numbers = {**self.numbers, "steps": f"{steps} + k"}
        keys, loop = keys_line(self.places["key0"][0], self.width), f"for l in range({self.width}):"
        if not self.noise.pairs:
            return [keys, "for k in range(ahead):", *margin([loop, *margin(one("k"))])]
        drawn = [f"count, who = whole({steps} + k), whole({self.at('member')})"]
        lines = []
        for d, (kind, c) in enumerate(self._draws()):
            places = f"{self.at('bits', 2 * d)}, {self.at('bits', 2 * d + 1)}"
            drawn.append(f"{places} = random_bits(key0, key1, who, {c}, {kind}, 0, count >> 1)")
            lines.append(f"both{kind}_{c}_0, both{kind}_{c}_1 = pair_of_bits({places})")
        for self.half, k in enumerate(("k", "k + 1")):
            lines += one(k)
        return [keys, "for k in range(0, ahead, 2):", *margin([loop, *margin(drawn), loop, *margin(lines)])]


def keys_line(row: int, width: int) -> str:
    """The line that names what all lanes share, before a loop over them. row: of the first half of the key, before the others."""
    return "key0, key1, halvings = " + ", ".join(f"whole(S[{(row + k) * width}])" for k in range(3))
