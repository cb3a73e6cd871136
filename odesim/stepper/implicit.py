# ruff: noqa: F821, F841, RUF059
# mypy: ignore-errors
"""One step of a Rosenbrock method, written once: the linear systems of its stages, error norm, defect, for one system and lanes.

It is text, read together with step.py, which says how. With g = gamma h and J the Jacobian at y, stage s solves
(1 - g J) k_s = g f(t + c_s h, y + sum_j A[s, j] k_j) + sum_j gamma C[s, j] k_j + g d_s h df/dt (Hairer, Wanner II, IV.7).

What the target alone can do, and how differently it may do it: `linear`, the right-hand side with J and df/dt; `along`, J v + df/dt;
`eliminate`, 1 - g J made ready, and whether that can be; `drift`, a right side with g d h df/dt; `solve`, by an elimination written out,
in loops, or by LAPACK and the structure of J; `solved`, whether a solution is one; `restore`, a state moved to where linear invariants
have their first values.
"""

# "jacobian": as many numbers as a target needs for J and df/dt
ROWS = {
    "y": "state", "z": "state", "within": "state", "f": "state", "f_z": "state", "b": "state", "q": "state", "unit": "state",
    "k": "stage", "p": "param", "J": "jacobian", "J_z": "jacobian",
}  # fmt: skip
DOES = ("linear", "along", "eliminate", "drift", "solve", "solved", "restore")
LOGICAL = ("last", "good")


def units(old, new):
    return 1.0 / (atol + rtol * larger(abs(old), abs(new)))


def mean_square(what):
    return sum_of((what * unit) * (what * unit)) * PART


def square_error(what, more):
    # loops add n-th parts, and always did: it is another rounding, and strict runs keep their bits
    return sum_of(PART * (what * unit) * (what * unit) + more) if LOOPS else sum_of((what * unit) * (what * unit) + more) * PART


def inside(theta):  # the state at t + theta used
    return y + dot(weights(theta), k)


def goal():  # Gustafsson's rule predicts from two accepted steps: a stiff error does not follow h^p while the step changes (IV.8)
    return gustafsson(less, ratio, fits)


def remembered():  # h error^(-1/p)
    return used * (less if less < MOST_LESS else MOST_LESS)


def begin():
    t, past, retry, steps, rejected, due, saved = t0, 0.0, 0.0, 0.0, 0.0, inf, 0.0
    f, J = linear(t0, y)
    wild = strays(f, y)
    if not CHOOSES:
        h = h0
    if ADAPTIVE and CHOOSES and (TOGETHER or wild == 0.0):  # Hairer, Norsett, Wanner I, II.4, with y'' itself
        unit = units(y, y)
        b = along(J, f)
        slope = sqrt(mean_square(f))
        h, longest_first = trial_step(sqrt(mean_square(y)), slope, t1 - t0)
        steep = steepest(slope, sqrt(mean_square(b)))
        h = first_step(power(0.01 / steep, START_POWER), steep, longest_first, t0, t1 - t0, longest)
    code = RUNNING if wild == 0.0 else NON_FINITE


def step():
    g = GAMMA * used
    good = eliminate(J, y, g)
    for s in stages(0, LAST):
        if TOGETHER or good:
            if s == 0:
                b = drift(g * f, J, g, D[s] * used)
                k[s] = solve(J, g, b)
            else:
                k[s] = right(t + C[s] * used if C[s] < 1.0 else new, y + dot(A[s], k), z)
                k[s] = dot(G[s], k) + g * k[s]
                k[s] = drift(k[s], J, g, D[s] * used)
                k[s] = solve(J, g, k[s])
            if s == 0 or not TOGETHER:
                good = solved(good, J, g, k[s], b)
    error = nan
    if TOGETHER or good:
        z = z + k[LAST]
        z = restore(z)
        unit = units(y, z)
        if ADAPTIVE:
            error = square_error(k[LAST], z - z) if good else nan  # z - z: 0, or NaN where the new state is not finite
            if TOGETHER or error <= 1.0:
                # how far the interpolant p is from the solution within: (1 - g J)^-1 (h p' - g f(p)) at CHECKED. A stiff component
                # meets its algebraic equation at the end of a step however long it is, and is only wrong between the ends
                q = right(t + CHECKED * used, y + dot(CHECK, k), within)
                q = dot(CHECK_SLOPE, k) - g * q
                q = solve(J, g, q)
                defect = square_error(q, 0.0)
                error = (error if error >= defect else defect) if error <= 1.0 else error
        else:
            error = 0.0 if good and strays(z, z) == 0.0 else nan
        if TOGETHER or error <= 1.0:
            f_z, J_z = linear(new, z)
            error = error if strays(f_z, z) == 0.0 else nan
    if ADAPTIVE:
        ratio = SAFETY * used / past  # infinite before a step was accepted
        less = power(error if error > LEAST_SQUARE else LEAST_SQUARE, ERROR_POWER)
