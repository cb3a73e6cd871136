# ruff: noqa: F821, F841, RUF059
# mypy: ignore-errors
"""What every step has, written once: where it aims, whether it is accepted and what follows it, saved states, events, laws.

The functions here are text, as those of explicit.py, implicit.py and stabilised.py, each of which is read together with this file and says
what is its own: `begin`, `step`, and as named expressions `goal`, the factor of the next step, `remembered`, what the control keeps of an
accepted step in `past`, and `inside`, a state within the step.

statements.py parses them, and no one calls them. A name is a row of memory (ROWS), a number common to all members (COMMON), a constant
(capitals: known when the text is read, or a number in a table), or else one number a member. An expression with a row in it is meant for
each component, `atol` too where states have their own; `sum_of` adds over them in the one order of all targets. `k[s] = right(t, y, z)`
leaves the state at which it evaluates in z. What is *not* said is the target's: how many members run side by side, whether components are
written out, whether a row is memory or a register, whether `take` selects, branches or swaps addresses.

Constants that switch. ADAPTIVE: else steps are fixed, which is another control and not another step. CHOOSES: the first step follows from
the state and its derivatives; else it is h0. IMPLICIT: stages solve linear systems. STABILISED: as many stages as
stability asks for. SAVES, EVENTS, LAWS: whether there are any. TOGETHER:
members are stepped side by side, and what some do not need is computed for all; a single run skips it, and its right-hand sides are
counted.
"""

WATCHES = ("begin_events", "sample_events", "find_events", "keep_samples", "begin_laws", "watch_laws")
COMMON = ("t0", "t1", "rtol", "atol", "longest", "h0", "most", "fixed", "rest", "total")


def strays(what, new):  # 0, or NaN where one of them is not finite
    return sum_of((new - new) + (what - what))


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
        # no shorter implicit step, for its inverse would overflow
        small = not last and ((IMPLICIT and h < SHORTEST) or too_small(t, h, new, t0))
        used = new - t
    else:
        last = steps + 1.0 >= total
        new = moment(steps + 1.0, t0, t1, fixed, total)
        used = rest if last else fixed
        small = False


def judge():
    fits = error <= 1.0  # an error that is not a number does not
    accept = code == RUNNING and fits and not small
    if ADAPTIVE:
        following = at_most(next_step(used, error, goal(), retry != 0.0, SHRINK, GROW), longest)
        past = remembered() if accept else past
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
        end, place = find_events(t, used, new)
        keep_samples()
        stopped = place >= 0.0


def save():  # of one member, after each accepted step
    while accept and due <= (end if EVENTS else new):
        theta = (due - t) / used if due < new else 1.0
        if theta < 1.0:
            if IMPLICIT:
                within = inside(theta)
                within = restore(within)
                out(saved, within)
            else:
                out(saved, inside(theta))
        else:
            out(saved, z)
        saved = saved + 1  # lanes have it as a whole number: 9 % of the time of 100 saved times
        due = grid(saved)


def accept():  # events and laws: of one member that accepts
    if EVENTS and stopped:
        code = EVENT
        if place < 1.0:
            z = inside(place)
            if IMPLICIT:
                z = restore(z)
    if LAWS:
        watch_laws(end if EVENTS else new, z)
    take(y, z, accept)
    if IMPLICIT or STABILISED:
        take(f, f_z, accept)
    if IMPLICIT:
        take(J, J_z, accept)
    elif not (NOISY or STABILISED):
        take(k[0], k[LAST], accept)
    t = (end if EVENTS else new) if accept else t
