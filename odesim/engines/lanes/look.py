"""The text by which a lane checks what limits its steps: accuracy, or the stability of the method."""

from math import cos

import numpy as np

from odesim.engines.lanes.lines import at, call_right, load_numbers, load_state, real
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper.codes import Code
from odesim.stepper.control import FAR, FEW, HELD, MANY, SHORT
from odesim.stepper.tableau import stable_up_to


def limited_text(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of limited(S, l, t1, rtol, atol, first, most): the code of lane l, whose member has come to its limit of steps.

    first: the first such limit. The code is HANDED_OVER where stability holds the step and the rest is long. That follows by the rule of
    odesim.run.auto, with the next step and its power iterations. Else it is MAX_STEPS where the limit is most, or RUNNING with twice the
    limit. Where the first limit is most nobody looks. A member that is handed over stores the number of steps tried in the place of its
    accepted steps. In the place of its rejected steps it stores how many more it would take.
    """
    if not plan.looks:
        return []
    w, states = plan.width, range(plan.formulas.states)
    small = float(np.sqrt(np.finfo(plan.formulas.dtype).eps))
    bound = HELD * stable_up_to(plan.method)
    radius = [
        *load_numbers(plan, rows),
        *load_state(plan, "f", rows.f),
        *(f"a = abs(y{d})\nb = a if a > least else least\nu{d} = b if b > 0.0 else 1.0\nr{d} = 1.0 / u{d}" for d in states),
        *(f"w{d} = {small * cos(1.0 + 2.4 * d)!r} * u{d}" for d in states),
        f"growth, radius, fine, k, last = 0.0, 0.0, 1.0, 0, {FEW}",
        "while k < last:",
        *(f"    z{d} = {real(plan, f'y{d} + w{d}')}" for d in states),
        "    " + call_right(plan, "t", "z", "g"),
        "    size, grown = 0.0, 0.0",
        *(f"    a, b = (z{d} - y{d}) * r{d}, (g{d} - f{d}) * r{d}\n    size, grown = size + a * a, grown + b * b" for d in states),
        "    fine = fine if size > 0.0 and grown > 0.0 and grown < inf else 0.0",
        "    before, growth = growth, grown / size if fine > 0.0 else growth",
        "    radius = sqrt(sqrt(before) * sqrt(growth))",
        f"    scale = {small * len(states) ** 0.5!r} / sqrt(grown) if fine > 0.0 else 0.0",
        *(f"    w{d} = (g{d} - f{d}) * scale" for d in states),
        "    k += 1",
        f"    last = {MANY} if k == {FEW} and h * radius > {bound!r} else last",
    ]
    lines = [
        f"tried, t, h = {at(rows.steps, w)} + {at(rows.rejected, w)}, {at(rows.t, w)}, {at(rows.h, w)}",
        "if first >= most:",
        f"    return {float(Code.MAX_STEPS)}",
        "left = (t1 - t) / h",
        f"if left >= {SHORT!r} * tried:",
        "    least = atol / rtol",
        *(f"    {inner}" for line in radius for inner in line.split("\n")),
        f"    if h * radius > {bound!r}:",
        f"        {at(rows.steps, w)}, {at(rows.rejected, w)} = tried, left if left < {FAR!r} else {FAR!r}",
        f"        return {float(Code.HANDED_OVER)}",
        "if tried >= most:",
        f"    return {float(Code.MAX_STEPS)}",
        f"{at(rows.most, w)} = 2.0 * tried if 2.0 * tried < most else most",
        f"return {float(Code.RUNNING)}",
    ]
    return ["\n".join(["@kernel", "def limited(S, l, t1, rtol, atol, first, most):", *(f"    {line}" for line in lines)])]
