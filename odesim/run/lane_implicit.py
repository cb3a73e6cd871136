"""How lanes solve the linear systems of a Rosenbrock step: what the text of the step (implicit.py) leaves to its target.

There are two printers, as of all steps. Written out, the right-hand side with its Jacobian, the elimination and each solution are straight
lines among the others. With loops they are functions, compiled once; an elimination of very many operations is that of a dense matrix,
in loops as well. J is a row of the operations of the Jacobian that depend on the point alone; a rejected step is tried again from them.
"""

import ast
from collections.abc import Callable, Collection, Sequence
from typing import Any

from odesim.base.parsing import fit
from odesim.ir.elimination import SparseSystem
from odesim.ir.scalars import printed, renamed
from odesim.run.lane_dense import restore_lines, touched
from odesim.run.lane_plan import KernelPlan, Rows, at, call_right, load_rows, loop_arguments, over_lanes
from odesim.run.lane_systems import Vector, factor, residual
from odesim.stepper.codes import Code
from odesim.stepper.lanes import Written, function
from odesim.stepper.looped import Lines, Looped
from odesim.stepper.statements import Do, Row, Take, stage_of

DENSE = """
@kernel
def eliminate(S):
    for d in range(0, {size}, {w}):
        for l in range({w}):
            S[{matrix} + d + l] = 0.0
    for l in range({w}):
        g = S[{g} + l]
        {entries}
    for k in range({N}):
        row = {matrix} + k * {row}
        for l in range({w}):
            S[row + k * {w} + l] = 1.0 / S[row + k * {w} + l]
        for i in range(k + 1, {N}):
            low = {matrix} + i * {row}
            for l in range({w}):
                S[low + k * {w} + l] *= S[row + k * {w} + l]
            for j in range(k + 1, {N}):
                for l in range({w}):
                    S[low + j * {w} + l] -= S[low + k * {w} + l] * S[row + j * {w} + l]


@kernel
def solve(S, at):
    for d in range(0, {states}, {w}):
        for l in range({w}):
            S[{x} + {sums} + d + l] = S[at + d + l]
    for d in range(0, {sums}, {w}):
        for l in range({w}):
            S[{x} + d + l] = S[{late} + d + l]
    for k in range({N}):
        for i in range(k + 1, {N}):
            for l in range({w}):
                S[{x} + i * {w} + l] -= S[{matrix} + i * {row} + k * {w} + l] * S[{x} + k * {w} + l]
    for k in range({N} - 1, -1, -1):
        for j in range(k + 1, {N}):
            for l in range({w}):
                S[{x} + k * {w} + l] -= S[{matrix} + k * {row} + j * {w} + l] * S[{x} + j * {w} + l]
        for l in range({w}):
            S[{x} + k * {w} + l] *= S[{matrix} + k * {row} + k * {w} + l]
    for d in range(0, {states}, {w}):
        for l in range({w}):
            S[at + d + l] = S[{x} + {sums} + d + l]
""".strip("\n")


def linear_lines(linear: SparseSystem, state: str, time: str) -> tuple[list[str], list[str]]:
    """Lines that compute f and J at a state (named <state>0, ...) and time, and the names of f; those of J are linear.constants."""
    names = {"t": time} | {f"y{d}": f"{state}{d}" for d in range(linear.states)}
    moved = {name: renamed(operation, names) for name, operation in linear.code.items()}
    return printed(moved), [names.get(f, f) for f in linear.outputs]


def finite(names: Sequence[str]) -> str:
    """The expression whether all names are finite: an infinite entry would solve every system by 0."""
    return f"{' + '.join(f'0.0 * {x}' for x in names) or '0.0'} == 0.0"


def row_of(e: ast.expr) -> Row:
    """The row that an argument names."""
    return stage_of(e) if isinstance(e, ast.Subscript) else ast.unparse(e)


def drift_lines(linear: SparseSystem, rights: Sequence[str]) -> tuple[list[str], Vector]:
    """Lines that add g later df/dt to a right side with these places, and the names of the right sides of the sums."""
    lines, late = [], Vector()
    for name, row in linear.rows.items():
        if "t" in row and name[0] == "y":
            right = rights[int(name[1:])]
            lines.append(f"{right} = {right} + g * later * {row['t']}")
        elif "t" in row:
            late[name] = f"b_{name}"
            lines.append(f"b_{name} = later * {row['t']}")
    return lines, late


def tolerance(plan: KernelPlan, rows: Rows) -> Callable[[int], str]:
    """The text of the absolute tolerance of component d, of lane l."""
    return lambda d: at(rows.atol[d], plan.width) if plan.by_state else "atol"


class WrittenImplicit(Written):
    """Lanes written out: an elimination in straight lines."""

    empty = ""

    def __init__(self, plan: KernelPlan, rows: Rows, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.plan, self.lane_rows, self.linear = plan, rows, plan.linear
        self.factors, self._late_sides = factor(plan.linear, "g"), Vector()
        self._sides, self._solution = Vector(), Vector()

    def local(self, row: Row, d: int) -> str:
        return self.linear.constants[d] if row in ("J", "J_z") else super().local(row, d)

    def _names(self, row: Row) -> list[str]:
        return [self.local(row, d) for d in range(self.n)]

    def _do(self, s: Do, stores: Collection[Row]) -> list[str]:
        linear, into = self.linear, s.names[0]
        match s.what, s.arguments:
            case "linear", [time, state]:
                lines, f = linear_lines(linear, ast.unparse(state), ast.unparse(time))
                lines += [f"{name} = {x}" for name, x in zip(self._names(into), f, strict=True)]
                return lines + [line for row in s.names for line in self._kept(row, stores)]
            case "along", [_, f]:
                lines, bent = linear.tangent({f"y{d}": x for d, x in enumerate(self._names(row_of(f)))}, "1.0")
                return [*lines, *(f"{name} = {bent[f'y{d}']}" for d, name in enumerate(self._names(into)))]
            case "eliminate", _:
                return [f"good = {finite(linear.constants)}", *printed(self.factors.code)]
            case "drift", [value, _, _, ast.BinOp(left=ast.Constant(value=part)) as later]:
                names = self._names(into)
                lines = [f"{name} = {text}" for d, name in enumerate(names) if (text := self._value(value, d)) != name]
                if not linear.moves or part == 0.0:
                    return lines
                more, self._late_sides = drift_lines(linear, names)
                return [*lines, f"later = {ast.unparse(later)}", *more]
            case "solve", [_, _, source]:
                names = self._names(into)
                self._sides = {f"y{d}": x for d, x in enumerate(self._names(row_of(source)))} | self._late_sides
                lines, self._solution = self.factors.solve(self._sides, names[0][:-1])
                self._late_sides = Vector()
                return lines + [f"{name} = 0.0" for d, name in enumerate(names) if f"y{d}" not in self._solution]
            case "solved", _:
                return (
                    []
                    if self.factors.exact
                    else residual(linear, "g", self._sides, self._solution, "good", tolerance(self.plan, self.lane_rows))
                )
            case "restore", [state]:
                return restore_lines(self.plan, self.lane_rows, ast.unparse(state))
        raise TypeError(s)


def lane_loop(name: str, arguments: str, lines: list[str], width: int) -> str:
    """The text of a function that runs these lines for each lane."""
    return function(f"{name}({arguments})", over_lanes(width, lines))


class LoopedImplicit(Looped):
    """Lanes with loops: functions for the right-hand side, the Jacobian, its elimination and a solution, which stands in its right side."""

    def __init__(self, plan: KernelPlan, rows: Rows) -> None:
        super().__init__(*loop_arguments(plan, rows))
        self.plan, self.lane_rows, self.linear, self.loops, self._drifted = plan, rows, plan.linear, rows.loops, False

    def _first(self, row: Row) -> str:
        """The first number of a row, as an argument: of a literal numba would compile the function once for each."""
        return f"int64({self.places[row] * self.width})"

    def _handed(self, e: ast.expr) -> list[str]:
        """Lines that hand a number over to a function."""
        lines = [
            *self._loads(e_.id for e_ in ast.walk(e) if isinstance(e_, ast.Name)),
            f"{at(self.loops.handed, self.width)} = {self._value(e)}",
        ]
        return self._over_lanes(lines)

    def _evaluate(self, row: Row, time: ast.expr, state: Row, lanes: Lines) -> list[str]:
        return [*self._handed(time), f"side(S, {self._first(state)}, {self._first(row)})"]

    def _copied(self, into: Row, source: str) -> list[str]:
        target = self.at(into, "i + ")
        return self._nest([f"{target} = {source}"]) if source != target else []

    def _do(self, s: Do) -> list[str]:
        linear, w, into = self.linear, self.width, s.names[0]
        match s.what, s.arguments:
            case "linear", [time, state]:
                f, J = map(self._first, s.names)
                return [*self._handed(time), f"slopes(S, {self._first(ast.unparse(state))}, {f}, {J})"]
            case "along", [_, f]:
                names = [f"f{d}" for d in range(linear.states)]
                lines, bent = linear.tangent({f"y{d}": x for d, x in enumerate(names)}, "1.0")
                load = [*self._inputs(), *load_rows("f", self._lines_of(ast.unparse(f)), w)]
                put = [f"{at(r, w)} = {bent[f'y{d}']}" for d, r in enumerate(self._lines_of(into))]
                return self._over_lanes([*load, *lines, *put])
            case "eliminate", _:
                good = self.at("good")
                sums = self._nest([f"{good} += 0.0 * {self.at('J', 'i + ')}"], self.place.jacobian) if self.place.jacobian else []
                check = self._over_lanes([f"{good} = 1.0 if {good} == 0.0 else 0.0"])
                return [*self._over_lanes([f"{good} = 0.0"]), *sums, *check, "eliminate(S)"]
            case "drift", [value, _, _, later]:
                self._drifted = linear.moves
                lines = self._copied(into, self._text(value, self._lane_number))
                return [*lines, *([*self._handed(later), f"drift(S, {self._first(into)})"] if linear.moves else [])]
            case "solve", [_, _, source]:
                lines = self._copied(into, self.at(row_of(source), "i + "))
                if self.loops.late and not self._drifted:
                    lines += self._nest([f"S[{self.loops.late.start * w} + i + l] = 0.0"], len(self.loops.late))
                self._drifted = False
                return [*lines, f"solve(S, {self._first(into)})"]
            case "solved", _:
                return ["check(S, atol)"] if self._checks else []
            case "restore", _:
                return ["restore(S)"] if touched(self.plan) else []
        raise TypeError(s)

    # ---- functions

    def begin_lines(self) -> list[str]:
        """Lines of the start."""
        return [*self.head, *self._lines(self.phases["begin"])]

    def step_lines(self) -> list[str]:
        """Lines of a step, which keep what its interpolant needs before the state moves, and count."""
        plan, rows, w = self.plan, self.lane_rows, self.width
        accept = next(i for i, s in enumerate(self.phases["step"]) if isinstance(s, Take))
        lines = [*self.head, *self._lines(self.phases["step"][:accept])]
        taken, new = f"{self.at('accept')} != 0.0", self.at("new")
        if plan.dense:
            old = rows.old[0] * w
            lines += self._nest([f"S[{old} + i + l] = {self.at('y', 'i + ')}"])
            lines += self._over_lanes(
                [
                    f"{at(rows.before, w)}, {at(rows.step, w)} = {self.at('t')}, {self.at('used')}",
                    f"{at(rows.done, w)} = {new} if {taken} else -inf",
                ]
            )
        counts = [f"ended += 0 if {self.at('code')} == {float(Code.RUNNING)} else 1"]
        counts += [f"saving += 1 if {taken} and {at(rows.due, w)} <= {new} else 0"] if plan.saves else []
        return [*lines, *self._lines(self.phases["step"][accept:]), *self._over_lanes(counts)]

    def _lines_of(self, row: Row) -> range:
        """The rows of W of a row of the text."""
        return range(self.places[row], self.places[row] + self.length(row))

    def _inputs(self) -> list[str]:
        """Lines that load what the Jacobian reads."""
        named = [f"{name} = {at(r, self.width)}" for name, r in zip(self.linear.constants, self._lines_of("J"), strict=True)]
        return [*load_rows("p", self.lane_rows.p, self.width), *load_rows("y", self.lane_rows.y, self.width), *named]

    @property
    def _checks(self) -> bool:
        return self.loops.factors is None or not self.loops.factors.exact

    def system_texts(self) -> list[str]:
        """The functions of a step: side(S, state, into), slopes(S, state, f, J), eliminate(S), solve(S, at) and others where needed."""
        w, n, linear, plan = self.width, self.linear.states, self.linear, self.plan
        handed = at(self.loops.handed, w)
        load = [*(f"z{d} = S[state + {d * w} + l]" for d in range(n)), *load_rows("p", self.lane_rows.p, w), f"time = {handed}"]
        side = [*load, call_right(plan, "time", "z", "k"), *(f"S[into + {d * w} + l] = k{d}" for d in range(n))]
        lines, f = linear_lines(linear, "z", "time")
        put = [f"S[f + {d * w} + l] = {x}" for d, x in enumerate(f)] + [
            f"S[J + {d * w} + l] = {'time' if x == 't' else x}" for d, x in enumerate(linear.constants)
        ]
        out = [lane_loop("side", "S, state, into", side, w), lane_loop("slopes", "S, state, f, J", [*load, *lines, *put], w)]
        if linear.moves:
            more, late = drift_lines(linear, [f"b{d}" for d in range(n)])
            body = [*(f"b{d} = S[at + {d * w} + l]" for d in range(n)), f"g, later = {self.at('g')}, {handed}"]
            put = [f"S[at + {d * w} + l] = b{d}" for d in range(n)] + [f"{at(r, w)} = {late[x]}" for x, r in self._late_rows() if x in late]
            out.append(lane_loop("drift", "S, at", [*body, *self._inputs(), *more, *put], w))
        if places := touched(plan):
            rows = self._lines_of("z")
            load = [f"z{d} = {at(rows[d], w)}" for d in places]
            put = [f"{at(rows[d], w)} = z{d}" for d in places]
            out.append(lane_loop("restore", "S", [*load, *restore_lines(plan, self.lane_rows, "z"), *put], w))
        return [*out, *(self._factor_texts() if self.loops.factors is not None else [self._dense_text()]), *self._check_text()]

    def _late_rows(self) -> list[tuple[str, int]]:
        return list(zip(self.linear.sums, self.loops.late, strict=True))

    def _late_sides(self) -> tuple[list[str], Vector]:
        """Lines that load right sides of the sums, and their names."""
        late = {x: r for x, r in self._late_rows() if "t" in self.linear.rows[x]}
        return [f"b_{x} = {at(r, self.width)}" for x, r in late.items()], {x: f"b_{x}" for x in late}

    def _unknown(self) -> list[str]:
        return [*self.linear.sums, *(f"y{d}" for d in range(self.linear.states))]

    def _factor_texts(self) -> list[str]:
        """eliminate and solve, written out."""
        w, n, loops, (load_late, late) = self.width, self.linear.states, self.loops, self._late_sides()
        assert loops.factors is not None
        names = loops.factors.names()
        put = [f"{at(r, w)} = {x}" for r, x in zip(loops.matrix, names, strict=True)]
        lines, x = loops.factors.solve({f"y{d}": f"b{d}" for d in range(n)} | late, "x")
        load = [f"{name} = {at(r, w)}" for r, name in zip(loops.matrix, names, strict=True)]
        load += [*load_late, *(f"b{d} = S[at + {d * w} + l]" for d in range(n))]
        solution = [f"{at(r, w)} = {x.get(name, '0.0')}" for r, name in zip(loops.x, self._unknown(), strict=True)]
        solution += [f"S[at + {d * w} + l] = {x[f'y{d}']}" for d in range(n)]
        eliminate = [f"g = {self.at('g')}", *self._inputs(), *printed(loops.factors.code), *put]
        return [lane_loop("eliminate", "S", eliminate, w), lane_loop("solve", "S, at", [*load, *lines, *solution], w)]

    def _dense_text(self) -> str:
        """eliminate and solve of a dense matrix."""
        w, loops, unknown, entries = self.width, self.loops, self._unknown(), self._inputs()
        place, size = {name: k for k, name in enumerate(unknown)}, len(unknown)
        for name, k in place.items():
            entries.append(f"{at(loops.matrix[k * size + k], w)} = 1.0")
            for read, e in self.linear.rows[name].items():
                if read != "t":
                    scaled = f"g * {e}" if name[0] == "y" else e
                    entries.append(f"{at(loops.matrix[k * size + place[read]], w)} -= {scaled}")
        words = {"w": w, "N": size, "row": size * w, "size": len(loops.matrix) * w, "matrix": loops.matrix.start * w}
        words |= {"g": self.places["g"] * w, "states": self.linear.states * w, "sums": len(self.linear.sums) * w, "x": loops.x.start * w}
        return fit(DENSE, entries="\n".join(entries), late=loops.late.start * w, **words)

    def _check_text(self) -> list[str]:
        """check makes `good` false where the solution of the first stage, whose right side is the row b, is not one."""
        if not self._checks:
            return []
        w, n, (load_late, late) = self.width, self.linear.states, self._late_sides()
        solution = {name: f"x_{name}" for name in self._unknown()}
        load = [f"g = {self.at('g')}", *self._inputs(), *load_late, *load_rows("b", self._lines_of("b"), w)]
        load += [f"{solution[name]} = {at(r, w)}" for r, name in zip(self.loops.x, self._unknown(), strict=True)]
        lines = residual(
            self.linear, "g", {f"y{d}": f"b{d}" for d in range(n)} | late, solution, "good", tolerance(self.plan, self.lane_rows)
        )
        good = self.at("good")
        return [lane_loop("check", "S, atol", [*load, f"good = {good} != 0.0", *lines, f"{good} = 1.0 if good else 0.0"], w)]
