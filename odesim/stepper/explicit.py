# ruff: noqa: F821, F841, RUF059
# mypy: ignore-errors
"""One explicit step, written once: stages, error norm, control, events, saved states, for one system, lanes and threads of a GPU.

The functions here are text. statements.py parses them, and no one calls them. A name is a row of memory (ROWS), a number common to all
members (COMMON), a constant (capitals: known when the text is read, or a number in a table), or else one number a member. An expression
with a row in it is meant for each component; `sum_of` adds over them in the one order of all targets. `k[s] = right(t, y, z)` leaves the
state at which it evaluates in z. What is *not* said is the target's: how many members run side by side, whether components are written
out, whether a row is memory or a register, whether `take` selects, branches or swaps addresses.

Constants that switch. ADAPTIVE: else steps are fixed, which is another control and not another step. CHOOSES: the first step follows from
the state and its derivatives; else it is h0. LAST: the stage at the new point; 0
of a Map, whose stage 0 is the new state. SAVES, EVENTS, LAWS: whether there are any. TOGETHER: members are stepped side by side, and what
some do not need is computed for all; a single run skips it, and its right-hand sides are counted.
"""

# "state": one number a component. "stage": that for each stage. "param": the parameters. All else is one number a member
ROWS = {"y": "state", "z": "state", "x": "state", "k": "stage", "p": "param"}
COMMON = ("t0", "t1", "rtol", "atol", "longest", "h0", "most", "fixed", "rest", "total")
DOES = ("begin_events", "sample_events", "find_events", "keep_samples", "begin_laws", "watch_laws")
LOGICAL = ("last",)


def squares(what, old, new):
    # the last bracket is 0, or NaN where the new state is not finite: the larger of NaN and a number may be the number
    return sum_of(square(what / (atol + rtol * larger(abs(old), abs(new)))) + (abs(new) - abs(new)))


def strays(what, new):  # 0, or NaN where one of them is not finite
    return sum_of((new - new) + (what - what))


def norm(what, old, new):
    return sqrt(squares(what, old, new) / N)


def begin():
    t, log_old, retry, steps, rejected, due, saved = t0, LOG2_LEAST_OLD, 0.0, 0.0, 0.0, inf, 0.0
    if LAST > 0:
        k[0] = right(t0, y)
        wild = strays(k[0], y)
    else:
        wild = strays(y, y)
    if not CHOOSES:
        h = h0
    if ADAPTIVE and CHOOSES and (TOGETHER or wild == 0.0):  # Hairer, Norsett, Wanner I, II.4
        size = norm(y, y, y)
        slope = norm(k[0], y, y)
        trial, longest_first = trial_step(size, slope, t1 - t0)
        k[1] = right(t0 + trial, y + trial * dot((1.0,), k))
        steep = steepest(slope, norm(dot((-1.0, 1.0), k), y, y) / trial)
        h = first_step(power(0.01 / steep, START_POWER), steep, longest_first, t0, t1 - t0, longest)
    code = RUNNING if wild == 0.0 else NON_FINITE


def first_looks():  # of one member
    if EVENTS:
        begin_events(t0, y)
    if LAWS:
        begin_laws(t0, y)


def first_save():  # of one member
    due = grid(saved)
    if due == t0:
        out(saved, y)
        saved = 1.0
        due = grid(saved)


def aim():
    if ADAPTIVE:
        new, last = step_end(t, h, t1)
        small = not last and too_small(t, h, new, t0)
        used = new - t
    else:
        last = steps + 1.0 >= total
        new = moment(steps + 1.0, t0, t1, fixed, total)
        used = rest if last else fixed
        small = False


def step():
    if LAST == 0:
        k[0] = right(t, y)
        z = dot((1.0,), k)
    for s in stages(1, LAST):
        k[s] = right(t + C[s] * used if C[s] < 1.0 else new, y + used * dot(A[s], k), z)
    if ADAPTIVE:
        first = squares(used * dot(E[0], k), y, z) / N
        error = sqrt(first)
        if SECOND:  # II.10: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2); where e3 = 0 nothing is mixed, 0 / 0 is not meant
            second = squares(used * dot(E[1], k), y, z) / N
            error = first / sqrt(first + 0.01 * second) if second != 0.0 else error
        if UNSEEN:  # the estimate does not hold the last slope, and the next step begins with it
            error = nan if error <= 1.0 and strays(k[LAST], z) != 0.0 else error
    else:
        error = 0.0 if strays(k[LAST], z) == 0.0 else nan
    if SAVES or EVENTS:
        for s in stages(LAST + 1, ALL - 1):  # that only the interpolant needs
            inside = error <= 1.0 and (EVENTS or due < new)
            if TOGETHER or inside:
                k[s] = right(t + C[s] * used, y + used * dot(A[s], k), x)
                error = nan if inside and strays(k[s], x) != 0.0 else error
    fits = error <= 1.0  # an error that is not a number does not
    accept = code == RUNNING and fits and not small
    if ADAPTIVE:
        scale = log2(error if error > LEAST else LEAST)
        factor = SAFETY * exp2(pi_goal(scale, log_old, fits, ALPHA, BETA))
        following = at_most(next_step(used, error, factor, retry != 0.0, SHRINK, GROW), longest)
        log_old = (scale if scale > LOG2_LEAST_OLD else LOG2_LEAST_OLD) if accept else log_old
        h = h if small else following
    retry = 0.0 if fits else 1.0
    steps = steps + (1.0 if accept else 0.0)
    rejected = rejected + (0.0 if not ADAPTIVE or accept or small or code != RUNNING else 1.0)
    failed = RUNNING if ADAPTIVE or fits else NON_FINITE  # a fixed step cannot be taken again
    state = MAX_STEPS if steps + rejected >= most else failed
    state = OK if accept and last else (STEP_TOO_SMALL if small else state)
    code = state if code == RUNNING else code


def search():  # of one member that accepts; a terminal event ends the step at `end`, in the part `place` of it
    if EVENTS:
        sample_events(t, used, new)
        end, place = find_events(t, used, new, atol if ADAPTIVE else 0.0)
        keep_samples()
        stopped = place >= 0.0


def save():  # of one member, after each accepted step
    while accept and due <= (end if EVENTS else new):
        theta = (due - t) / used if due < new else 1.0
        if theta < 1.0:
            out(saved, y + used * dot(weights(theta), k))
        else:
            out(saved, z)
        saved = saved + 1.0
        due = grid(saved)


def accept():  # events and laws: of one member that accepts
    if EVENTS and stopped:
        code = EVENT
        if place < 1.0:
            z = y + used * dot(weights(place), k)
    if LAWS:
        watch_laws(end if EVENTS else new, z)
    take(y, z, accept)
    take(k[0], k[LAST], accept)
    t = (end if EVENTS else new) if accept else t


def unit(state):  # of each component: its size, where that is above what the tolerances take for 0
    return above_zero(larger(abs(state), atol / rtol))


def look():  # of one member that has come to its limit of steps: does stability hold them, and is the rest long?
    tried = steps + rejected
    left = (t1 - t) / h
    held = False
    if pilot < allowed and left >= SHORT * tried:
        # the spectral radius of the Jacobian by power iterations, from differences of the right-hand side in a direction that no
        # symmetry has; the geometric mean of the last two growths, for where units of components differ each one alone may be far off
        x = y + SMALL * slant(COMPONENT) * unit(y)
        growth, radius, fine, turn, turns = 0.0, 0.0, True, 0.0, FEW
        while turn < turns:
            k[1] = right(t, x)
            size = sum_of(square((x - y) / unit(y)))
            grown = sum_of(square((k[1] - k[0]) / unit(y)))
            fine = fine and size > 0.0 and grown > 0.0 and grown < inf
            before = growth
            growth = grown / size if fine else growth
            radius = sqrt(sqrt(before) * sqrt(growth))
            scale = SMALL * sqrt(N) / sqrt(grown) if fine else 0.0
            x = y + (k[1] - k[0]) * scale
            turn = turn + 1.0
            turns = MANY if turn == FEW and h * radius > BOUND else turns  # FEW cost as much as four steps of all lanes
        held = h * radius > BOUND
    going = pilot < allowed and tried < allowed
    code = HANDED_OVER if held else (RUNNING if going else MAX_STEPS)
    steps = tried if held else steps  # one that is handed over says how many steps were tried, and how many more it would take
    rejected = (left if left < FAR else FAR) if held else rejected
    most = 2.0 * tried if going and 2.0 * tried < allowed else allowed
