"""The text of states inside a step: the interpolant, the linear invariants that it keeps, and saved times.

weights(h, theta) and blend(y, c, k, c, k, ...) are functions of the kernel, which makes it quick to compile. Their arithmetic is that of a
single run, operation by operation.
"""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.invariants import exact_sums, parameter_values, text_of
from odesim.run.lane_plan import KernelPlan, Rows, at, over_lanes, reader_of
from odesim.run.lane_systems import product
from odesim.stepper.control import weight
from odesim.stepper.lanes import SPARE, Kinds, Written, comb_in, function
from odesim.stepper.readers import horner
from odesim.stepper.statements import Do, Each, If, Out, Row, Statement, While


def used_stages(plan: KernelPlan) -> list[int]:
    """The stages that the interpolant uses."""
    return [j for j in range(plan.method.stages) if any(plan.method.P[j])]


def length(plan: KernelPlan) -> str:
    """The factor of the stages' weights: the length of the step, or 1 for a stiff method, whose stages contain it."""
    return "" if plan.stiff else "h * "


def interpolant_texts(plan: KernelPlan) -> list[str]:
    """The texts of weights(h, theta), the weights of the stages, and blend(y, c, k, c, k, ...), a state inside a step."""
    if not plan.dense or (plan.watch is None and (plan.by_powers or plan.stiff)):
        return []
    used = used_stages(plan)
    lines = [f"c{j} = {length(plan)}({ast.unparse(weight)})" for j, weight in horner(plan.method.P.tolist(), "theta")]
    lines.append(f"return ({', '.join(f'c{j}' for j in used)},)")
    weights = function("weights(h, theta)", lines, "inlined")
    total = Kinds(plan.formulas.dtype).combined("y", [(f"c{j}", f"k{j}") for j in used])
    return [weights, function(f"blend(y, {', '.join(f'c{j}, k{j}' for j in used)})", [f"return {total}"], "inlined")]


def load_lines(plan: KernelPlan, rows: Rows, wanted: Iterable[int]) -> list[str]:
    """Lines that load the interpolant's inputs for the states wanted: y<d>, k<stage>_<d>."""
    states = list(wanted)
    lines = [f"y{d} = {at(rows.old[d], plan.width)}" for d in states]
    return lines + [f"k{j}_{d} = {at(rows.stages[j][d], plan.width)}" for d in states for j in used_stages(plan)]


def weight_lines(plan: KernelPlan, theta: float | None = None) -> list[str]:
    """Lines that set c<stage> from h and the name theta, or for a number."""
    used = used_stages(plan)
    if theta is None:
        return [f"{', '.join(f'c{j}' for j in used)}, = weights(h, theta)"]
    return [f"c{j} = {length(plan)}{weight(plan.method.P[j].tolist(), len(plan.method.P[j]), theta)!r}" for j in used]


def between_lines(plan: KernelPlan, wanted: Iterable[int], theta: float | None = None) -> list[str]:
    """Lines that set z<d>, the states wanted at the name theta of the last step, or at a number, from h and what was loaded."""
    return [*weight_lines(plan, theta), *blend_lines(plan, wanted)]


def blend_lines(plan: KernelPlan, wanted: Iterable[int]) -> list[str]:
    """Lines that set z<d>, the states wanted, from c<stage> and what was loaded."""
    used = used_stages(plan)
    return [f"z{d} = blend(y{d}, {', '.join(f'c{j}, k{j}_{d}' for j in used)})" for d in wanted]


def powers_text(plan: KernelPlan, rows: Rows) -> str:
    """powers(S): the polynomial in theta that the interpolant is, in all lanes, for all times that a step passes."""
    w, lines = plan.width, [f"h = {at(rows.step, plan.width)}"]
    for p, row in enumerate(rows.powers):
        weights = [(float(x), rows.stages[j]) for j, x in enumerate(plan.method.P[:, p]) if x != 0.0]
        sums = [" + ".join(f"{x!r} * {at(stage[d], w)}" for x, stage in weights) for d in range(plan.formulas.states)]
        lines += [f"{at(target, w)} = h * ({text})" for target, text in zip(row, sums, strict=True)]
    return function("powers(S)", over_lanes(w, lines))


def polynomial(coefficients: Sequence[str]) -> str:
    """The expression c0 + theta (c1 + theta (c2 + ...)) of a state in these powers."""
    text = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        text = f"{c} + theta * ({text})"
    return text


def restore_lines(plan: "KernelPlan", rows: "Rows", state: str) -> list[str]:
    """Lines that move a state (named <state>0, ...) so that its invariants, one after another, have the values of the start."""
    wanted = sorted({k for invariant in plan.invariants for k in invariant.reads})
    lines = [f"p{k} = S[{rows.p[k] * plan.width} + l]" for k in wanted]
    for i, (invariant, row) in enumerate(zip(plan.invariants, rows.sums, strict=True)):
        terms = []
        for place, factor in zip(invariant.places, invariant.weights, strict=True):
            terms.append(f"m{i}_{place}")
            lines.append(f"m{i}_{place} = {product(text_of(factor), f'{state}{place}')}")
        lines += [
            f"rest = S[{row * plan.width} + l] - ({' + '.join(terms)})",
            f"size = {' + '.join(f'{m} * {m}' for m in terms)}",
            "part = rest / size if size > 0.0 and abs(rest) < inf else 0.0",
            *(f"{state}{d} = {state}{d} + {state}{d} * (m{i}_{d} * part)" for d in invariant.places),
        ]
    return lines


def touched(plan: "KernelPlan") -> list[int]:
    """The states that occur in an invariant."""
    return sorted({place for invariant in plan.invariants for place in invariant.places})


def start_sums(plan: "KernelPlan", states: Array, shared: Mapping[str, Any], per_member: Mapping[str, Array]) -> Array:
    """Values (N, invariants) of the invariants of members that start from states (N, n); (1, invariants) where all have the same.

    shared: parameters of all members. per_member {name: (N, *shape)}: parameters of each member.
    """
    firsts = plan.formulas.values
    columns = [exact_sums(i, states, parameter_values(firsts, i.reads, shared, per_member)) for i in plan.invariants]
    return np.stack(np.broadcast_arrays(*columns), axis=1) if columns else np.empty((1, 0))


class Inside(Written):
    """States inside the last step of a lane, as the text of the step has them for saved times: by stages, or by powers of theta."""

    def __init__(self, plan: KernelPlan, rows: Rows) -> None:
        reader, some = reader_of(plan, events=False), {"end": rows.until, "due": rows.due, "t": rows.before, "used": rows.step}
        reader.known |= {"accept": True, "EVENTS": plan.watch is not None}
        places: dict[Row, Sequence[int]] = {name: (row,) for name, row in {**some, "new": rows.done}.items()}
        places["z"] = rows.y
        if not plan.by_powers:
            places["y"] = list(rows.old.values())
            places |= {("k", j): list(stage.values()) for j, stage in enumerate(rows.stages)}
        super().__init__(reader, plan.width, plan.formulas.states, places, {}, Kinds(plan.formulas.dtype))
        self.plan, self.lane_rows = plan, rows
        (self.loop,) = (s for s in reader.read("save") if isinstance(s, While))

    def _do(self, s: Do, stores: Collection[Row]) -> list[str]:
        return restore_lines(self.plan, self.lane_rows, "within")

    def _statement(self, s: Statement, stores: Collection[Row]) -> list[str]:
        if not isinstance(s, Out):
            return super()._statement(s, stores)
        parts = range(1 + len(self.lane_rows.powers))
        inside = comb_in(s.value) is not None
        states = [polynomial([f"c{p}_{d}" for p in parts]) if inside else self._value(s.value, d) for d in range(self.n)]
        return [f"out[(i * saves + int({s.place})) * {self.n} + {d}] = {state}" for d, state in enumerate(states)]

    def next_lines(self) -> list[str]:
        """Lines that set the row `saved` to the state at the next saved time."""
        theta, branch = self.loop.body[:2]
        assert isinstance(branch, If)
        *inside, out = branch.yes
        assert isinstance(out, Out)
        state = "within" if self.plan.stiff else SPARE
        inside = inside or [Each(SPARE, out.value)]
        ends = [
            (at(saved, self.width), f"{state}{d}", at(z, self.width))
            for d, (saved, z) in enumerate(zip(self.lane_rows.saved, self.lane_rows.y, strict=True))
        ]
        return [*self.lines([theta, *inside]), *(f"{row} = {x} if {ast.unparse(branch.test)} else {z}" for row, x, z in ends)]

    def lane_lines(self) -> list[str]:
        """Lines that write all saved times of lane l in the step, by powers of theta, and return how many are saved."""
        rows, w = self.lane_rows, self.width
        moved = [(p, d, row) for p, part in enumerate([list(rows.old.values()), *rows.powers]) for d, row in enumerate(part)]
        # through a line of memory: read from the lanes, these would become one gather each, at several times the cost
        places = [f"S[{rows.line * w + k}]" for k in range(len(moved))]
        lines = [f"{place} = {at(row, w)}" for place, (_, _, row) in zip(places, moved, strict=True)]
        lines += [f"c{p}_{d} = {place}" for place, (p, d, _) in zip(places, moved, strict=True)]
        return [*lines, *self.lines([self.loop]), f"{at(rows.due, w)} = due", "return saved"]


def save_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of interpolate(S), the state of all lanes at their next saved times; or of powers(S) and save_lane."""
    if not plan.saves:
        return []
    if plan.by_powers:
        return [powers_text(plan, rows), function("save_lane(S, l, i, saved, out, save, saves)", Inside(plan, rows).lane_lines())]
    # a Map has no time between two updates
    kept = [f"{at(row, plan.width)} = {at(y, plan.width)}" for row, y in zip(rows.saved, rows.y, strict=True)]
    lines = kept if plan.discrete else Inside(plan, rows).next_lines()
    return [function("interpolate(S)", over_lanes(plan.width, lines))]
