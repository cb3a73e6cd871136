"""The text by which lanes with one fixed step take many steps without a look at the numbers.

What is not finite stays so. Where it shows after some steps, they are taken once more, one by one and by the step with all its checks. So
a member ends at the step that failed, and has the bits that it would have by single steps. A look at each step costs half of a step of
tsit5 and more than one of rk4 again (Lorenz, 16 lanes: 2.8 in place of 1.8 ns, and 2.5 in place of 1.1).
"""

from odesim.engines.lanes.explicit_step import over_lanes, reader_of, written
from odesim.engines.lanes.lines import at
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.template import fit
from odesim.stepper.codes import Code
from odesim.stepper.lanes import function
from odesim.stepper.statements import Each, Right

UNSEEN = 64
"""The most steps without a look."""

MARCHING = """
if careful > 0:
    careful -= 1
else:
    ahead = free(S, t0, t1, fixed, total, most)
    if ahead > 0:
        if march(S, t0, t1, fixed, total, ahead) == 0:
            continue
        careful = ahead
""".strip("\n")

FREE = """
@kernel
def free(S, t0, t1, fixed, total, most):
    ahead = {unseen}.0
    for l in range({W}):
        if {code} != {running} and {code} != {idle}:  # a member that ends at its start
            return 0
        if {code} == {running}:
            left = (total if total < most else most) - 1.0 - {steps}  # the last step may be shorter
            {to_save}
            ahead = left if left < ahead else ahead
    return int(ahead)
""".strip("\n")
TO_SAVE = """
if {due} < inf:
    k = float(int(({due} - {t}) / fixed))
    k = k if moment({steps} + k, t0, t1, fixed, total) < {due} else k - 1.0
    left = k if k < left else left
""".strip("\n")


def march_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions free, the number of steps until one must be looked at, and march, which takes them; it returns 0 if all is finite."""
    if not plan.marches:
        return []
    w, last = plan.width, plan.method.last
    reader = reader_of(plan, events=False)
    step = written(plan, rows, reader)
    step.numbers = {**step.numbers, "used": "fixed"}
    step.places = {row: at_ for row, at_ in step.places.items() if row != "t"}  # the times of these steps are computed here
    stages = [s for s in reader.read("step") if isinstance(s, Each) or (isinstance(s, Right) and int(s.stage) <= last)]
    moment = "{} = moment({} + k{}, t0, t1, fixed, total)".format
    steps = at(rows.steps, w)
    one = [moment("t", steps, ""), moment("new", steps, " + 1.0"), *step.lines(stages)]
    one += [f"{at(row, w)} = z{d}" for d, row in enumerate(rows.y)] + [f"{at(row, w)} = k{last}_{d}" for d, row in enumerate(rows.f)]
    pairs = [(at(a, w), at(b, w)) for a, b in zip((*rows.y, *rows.f), rows.held, strict=True)]
    finite = " + ".join(f"({here} - {here})" for here, _ in pairs)
    wrong = f"wrong += 1 if {at(rows.code, w)} == {float(Code.RUNNING)} and {finite} != 0.0 else 0"
    lines = [
        *over_lanes(w, [f"{held} = {here}" for here, held in pairs]),
        "for k in range(ahead):",
        *(f"    {line}" for line in over_lanes(w, one)),
        "wrong = 0",
        *over_lanes(w, [wrong]),
        "if wrong > 0:",
        *(f"    {line}" for line in over_lanes(w, [f"{here} = {held}" for here, held in pairs])),
        "    return wrong",
        *over_lanes(w, [f"{steps} += ahead", f"{at(rows.t, w)} = moment({steps}, t0, t1, fixed, total)"]),
        "return 0",
    ]
    places = {
        "code": at(rows.code, w),
        "steps": steps,
        "t": at(rows.t, w),
        "W": w,
        "running": float(Code.RUNNING),
        "idle": float(Code.IDLE),
        "unseen": UNSEEN,
    }
    to_save = fit(TO_SAVE, due=at(rows.next_save, w), **places) if plan.saves else "pass"
    return [fit(FREE, to_save=to_save, **places), function("march(S, t0, t1, fixed, total, ahead)", lines)]
