# ruff: noqa: F821, F841
# mypy: ignore-errors
"""One explicit step, written once: stages and error norm, for one system, lanes and threads of a GPU.

It is text, read together with step.py, which says how. LAST: the stage at the new point; 0 of a Map, whose stage 0 is the new state.
NOISY: a scheme for noise (tableau.py). `draw` draws the normal numbers of a step, and `shake` makes of them the noise that a stage
sees, among the parameters. SERIES: `series` sets the stages between the first and the last to Taylor coefficients (taylor.py).
"""

# "state": one number a component. "stage": that for each stage. "param": the parameters. All else is one number a member
ROWS = {"y": "state", "z": "state", "x": "state", "k": "stage", "p": "param"}
DOES = ("draw", "shake", "series")
LOGICAL = ("last",)


def squares(what, old, new):
    # the last bracket is 0, or NaN where the new state is not finite: the larger of NaN and a number may be the number
    return sum_of(square(what / (atol + rtol * larger(abs(old), abs(new)))) + (abs(new) - abs(new)))


def norm(what, old, new):
    return sqrt(squares(what, old, new) / N)


def begin():
    t, past, retry, steps, rejected, due, saved = t0, LOG2_LEAST_OLD, 0.0, 0.0, 0.0, inf, 0.0
    if LAST > 0 and not NOISY:
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


def inside(theta):  # the state at t + theta used
    return y + used * dot(weights(theta), k)


def goal():  # the PI rule; a series whose step was accepted is held back by `reach` alone, which knows more than the last error
    return GROW if SERIES and fits else SAFETY * exp2(pi_goal(scale, past, fits, ALPHA, BETA))


def remembered():  # log2 of the error norm
    return scale if scale > LOG2_LEAST_OLD else LOG2_LEAST_OLD


def reach():  # of a series: h no longer than its last two coefficients allow
    # where term n alone is of the size of the tolerance: with the order that belongs to rtol about the e^-2 of a radius of convergence of
    # Jorba and Zou, sec. 3. Two terms, as every second one of an even or odd function vanishes
    k = series(t, y)
    far = log2(larger(sum_of(square(k[LAST - 1] * (1.0 / (atol + rtol * abs(y))))) / N, SHORTEST)) * (0.5 / LAST)
    further = log2(larger(sum_of(square(k[LAST - 2] * (1.0 / (atol + rtol * abs(y))))) / N, SHORTEST)) * (0.5 / (LAST - 1.0))
    further = SAFETY * SAFETY * exp2(-larger(far, further))
    h = further if further < h else h


def within():  # of a series: coefficients times powers of the step are the stages that the interpolant reads
    scale = used
    for s in stages(1, LAST - 1):
        k[s] = k[s] * scale
        scale = scale * used


def step():
    if NOISY:  # no stage serves the next step, whose noise is another
        root = 1.0 / sqrt(used)
        draw(steps)
        shake(0, root, used)
        k[0] = right(t, y)
    elif LAST == 0:
        k[0] = right(t, y)
        z = dot((1.0,), k)
    if SERIES:
        if not ADAPTIVE:
            k = series(t, y)
        z = k[LAST - 1]
        x = 0.0 * z
        for s in stages(2, LAST):  # Horner's scheme, and that of the derivative: the smallest terms first
            x = z + used * x
            z = k[LAST - s] + used * z
        x = z + used * x
        z = y + used * z
        k[LAST] = right(new, z)
    else:
        for s in stages(1, LAST - 1 if NOISY else LAST):
            if NOISY:
                shake(s, root, used)
            k[s] = right(t + C[s] * used if C[s] < 1.0 else new, y + used * dot(A[s], k), z)
    if NOISY:
        z = y + used * dot(A[LAST], k)
    if ADAPTIVE:
        first = (squares(used / (LAST + 1.0) * (k[LAST] - x), y, z) if SERIES else squares(used * dot(E[0], k), y, z)) / N
        error = sqrt(first)
        if SECOND:  # II.10: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2); where e3 = 0 nothing is mixed, 0 / 0 is not meant
            second = squares(used * dot(E[1], k), y, z) / N
            error = first / sqrt(first + 0.01 * second) if second != 0.0 else error
        if UNSEEN:  # the estimate does not hold the last slope, and the next step begins with it
            error = nan if error <= 1.0 and strays(k[LAST], z) != 0.0 else error
    else:
        error = 0.0 if strays(z if NOISY else k[LAST], z) == 0.0 else nan
    if (SAVES or EVENTS) and not NOISY:
        for s in stages(LAST + 1, ALL - 1):  # that only the interpolant needs
            needed = error <= 1.0 and (EVENTS or due < new)
            if TOGETHER or needed:
                k[s] = right(t + C[s] * used, y + used * dot(A[s], k), x)
                error = nan if needed and strays(k[s], x) != 0.0 else error
    if ADAPTIVE:
        scale = log2(error if error > LEAST else LEAST)


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
