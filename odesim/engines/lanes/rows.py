"""The rows of S, the working memory of a lane kernel, and their names in its text."""

from odesim.engines.lanes.linear_systems import Factors, factor
from odesim.engines.lanes.plan import KernelPlan


class Rows:
    """The names of the rows of S, and their number."""

    def __init__(self, plan: KernelPlan) -> None:
        n, m = plan.formulas.states, plan.method
        self.count = 0
        self.y, self.f = self.take(n), self.take(0 if plan.discrete else n)
        self.slopes = self.take(len(plan.linear.constants) if plan.stiff else 0)  # f and these follow each other
        self.p = self.take(plan.formulas.count)
        self.sums = self.take(len(plan.invariants))
        (self.t, self.h, self.error, self.retry, self.steps, self.rejected, self.most, self.code) = self.take(8)
        self.old, self.stages = dict[int, int](), list[dict[int, int]]()
        self.powers, self.saved = list[range](), range(0)
        self.next_save = self.before = self.step = self.done = self.until = -1
        if plan.dense and not plan.sampled:
            some = plan.watch is not None and not (plan.saves or plan.loops or plan.watch.terminal)
            wanted = plan.watch.reads("y") if plan.watch is not None and some else range(n)
            self.old, *self.stages = (dict(zip(wanted, self.take(len(wanted)), strict=True)) for _ in range(1 + m.stages))
        if plan.saves or plan.watch is not None:
            self.before, self.step, self.done = self.take(3)
            self.until = self.done
        if plan.saves:
            (self.next_save,) = self.take(1)
            self.saved = self.take(n)
            self.powers = [self.take(n) for _ in range(m.P.shape[1] if plan.by_powers else 0)]
            self.line = self.take(-(-n * (len(self.powers) + 1) // plan.width)).start
        self.g = self.last = range(0)
        if plan.watch is not None:
            size = plan.watch.size
            self.samples = [self.take(size) for _ in range(plan.watch.pieces + 2)]  # from the last one before the step on
            self.last, self.g = self.samples[-2:]
            self.probed = self.take(size)
            self.marks, self.until, self.theta = self.take(3)
        if plan.queued and plan.watch is not None:
            self.queue = self.take(plan.watch.pieces + 2)  # from the last sample before the step on
            self.origin, self.length, self.arrival, self.owner, self.place, self.side, self.zero = self.take(7)
        if plan.parts:
            self.start, self.end = self.take(2)
        if plan.limited:
            (self.longest,) = self.take(1)
        self.held = self.take(n + len(self.f) if plan.marches else 0)
        if plan.loops:
            self.loops = Loops(plan, self)

    def take(self, count: int) -> range:
        first, self.count = self.count, self.count + count
        return range(first, self.count)


MOST_FACTORS = 300
"""Lines of an elimination that is written out."""


class Loops:
    """The names of the further rows of S that loops need."""

    def __init__(self, plan: KernelPlan, rows: Rows) -> None:
        linear, n = plan.linear, plan.formulas.states
        found = factor(linear, "g")
        self.factors: Factors | None = found if len(found.code) <= MOST_FACTORS else None
        self.unknown = n + len(linear.sums)
        take = rows.take
        self.u = [range(r[0], r[0] + n) for r in rows.stages] or [take(n) for _ in range(plan.method.stages)]
        self.new, self.length, self.g, self.error, self.defect, self.accept = take(6)
        self.z, self.after, self.ahead = take(n), take(n), take(n + len(linear.constants))
        self.late, self.x = take(len(linear.sums)), take(self.unknown)  # right-hand sides of the sums; the last solution
        self.matrix = take(len(found.names()) if self.factors else self.unknown**2)
