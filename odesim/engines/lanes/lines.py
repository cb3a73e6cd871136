"""Lines of text common to all lane kernels: numbers of a lane, loads, the call of the right-hand side."""

from collections.abc import Iterable

from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper.codes import Code


def at(row: int, width: int) -> str:
    """The text of an element of S."""
    return f"S[{row * width} + l]" if row else "S[l]"


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


def load_rows(letter: str, rows: Iterable[int], width: int) -> list[str]:
    """Lines that name rows of S."""
    return [f"{letter}{k} = {at(row, width)}" for k, row in enumerate(rows)]


def real(plan: KernelPlan, text: str) -> str:
    """The text of a number of S in the dtype of the states."""
    return f"float32({text})" if plan.formulas.dtype == "float32" else text


def load_state(plan: KernelPlan, letter: str, rows: Iterable[int]) -> list[str]:
    """Lines that name the components of a state or derivative."""
    return [f"{letter}{k} = {real(plan, at(row, plan.width))}" for k, row in enumerate(rows)]


def load_numbers(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that name the state and the parameters."""
    numbers = [(k, at(row, plan.width)) for k, row in enumerate(rows.p)]
    given = [f"p{k} = {text if k in plan.formulas.doubles else real(plan, text)}" for k, text in numbers]
    return [*load_state(plan, "y", rows.y), *given]


def call_right(plan: KernelPlan, t: str, state: str, into: str, prefix: str = "p") -> str:
    """The line k0, k1, ... = right(t, z0, z1, ..., p0, ...)."""
    f = plan.formulas
    target = ", ".join(f"{into}{d}" for d in range(f.states)) + ("," if f.states == 1 else "")
    return f"{target} = right({', '.join([t, *(f'{state}{d}' for d in range(f.states)), *names(prefix, f.count)])})"


def combination(plan: KernelPlan, start: str, terms: list[tuple[str, str]], late: int = 0) -> str:
    """start + c0*k0 + c1*k1 + ..., one after another; float32 is rounded after every four terms, but for the last `late` ones."""
    text, early = start, len(terms) - late
    for j, (c, k) in enumerate(terms):
        text = f"({text} + {c} * {k})"
        if j + 1 == len(terms) or (j < early and ((j + 1) % 4 == 0 or j + 1 == early)):
            text = real(plan, text[1:-1])
    return text


def longest(plan: KernelPlan, rows: Rows) -> str:
    """The text of the largest step of a lane."""
    return at(rows.longest, plan.width) if plan.limited else "inf"


def end_lines(shortest: str = "") -> list[str]:
    """Lines for the end of the next step of `size` from t: new, h; whether it is the last one, or too small.

    shortest: what it must not be below either.
    """
    lost = f"(size < {shortest} or too_small(t, size, new, t0))" if shortest else "too_small(t, size, new, t0)"
    return ["new, last = step_end(t, size, t1)", f"small = (not last) and {lost}", "h = new - t"]


def fits_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines for whether the step with this `error` is accepted."""
    running = f"running = {at(rows.code, plan.width)} == {float(Code.RUNNING)}"
    return [running, "fits = error <= 1.0", "accept = running and fits and not small"]


def next_lines(plan: KernelPlan, rows: Rows, factors: tuple[float, float]) -> list[str]:
    """Lines for the size `following` of the next step by a rule's `factor`; factors: bounds of shrinking and growing."""
    again = f"{at(rows.retry, plan.width)} != 0.0"
    lines = [f"following = next_step(h, error, factor, {again}, {factors[0]!r}, {factors[1]!r})"]
    return lines + ([f"following = at_most(following, {longest(plan, rows)})"] if plan.limited else [])


def counted_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that update counts, time and code after a step that is accepted, rejected or too small."""
    w = plan.width
    limit = at(rows.most, w) if plan.looks else "most"
    running = float(Code.RUNNING)
    return [
        f"{at(rows.retry, w)} = 0.0 if fits else 1.0",
        f"{at(rows.h, w)} = size if small else following",
        f"ahead = {at(rows.steps, w)} + (1.0 if accept else 0.0)",
        f"back = {at(rows.rejected, w)} + (0.0 if accept or small or not running else 1.0)",
        f"{at(rows.steps, w)}, {at(rows.rejected, w)} = ahead, back",
        f"{at(rows.t, w)} = new if accept else t",
        f"code = {float(Code.MAX_STEPS)} if ahead + back >= {limit} else {running}",
        f"code = {float(Code.OK)} if accept and last else ({float(Code.STEP_TOO_SMALL)} if small else code)",
        f"code = code if running else {at(rows.code, w)}",
        f"{at(rows.code, w)} = code",
        f"ended += 0 if code == {running} else 1",
    ]


def span_arguments(plan: KernelPlan) -> str:
    """The arguments of a kernel for the span: each lane has its own if members run in parts."""
    return "start, end" if plan.parts else "t0, t1"


def span_lines(plan: KernelPlan, rows: Rows, length: bool = False) -> list[str]:
    """Lines that name a lane's own span. length: span too."""
    own = [f"t0, t1 = {at(rows.start, plan.width)}, {at(rows.end, plan.width)}"] if plan.parts else []
    return [*own, *(["span = t1 - t0"] if length else [])]
