# ruff: noqa: F821, F841
# mypy: ignore-errors
"""One step of a Runge-Kutta-Chebyshev method, written once: as many stages as stability asks for, for one system of any size.

It is text, read together with step.py, which says how. Sommeijer, Shampine, Verwer, RKC: an explicit solver for parabolic PDEs, J. Comput.
Appl. Math. 88 (1998) 315, section 2: on eigenvalues along the negative real axis s stages are stable for steps of up to .65 s^2 in units of
the spectral radius. They hold three states, whatever s is. The radius comes from power iterations on differences of the right-hand side,
as in their code rkc.f, which begin where the last ones ended.

A text of its own and no branch of explicit.py: it keeps slopes and states in rows, where explicit.py hands combinations of stages to the
right-hand side. The recurrence runs twice, here and in control.chebyshev: w1 is known only after all of its degrees.
"""

ROWS = {
    "y": "state", "z": "state", "f": "state", "f_z": "state", "x": "state", "w": "state", "q": "state", "way": "state", "unit": "state",
    "k": "stage", "p": "param",
}  # fmt: skip
DOES = ()
LOGICAL = ("last",)


def squares(what, old, new):
    # the last bracket is 0, or NaN where the new state is not finite
    return sum_of(square(what / (atol + rtol * larger(abs(old), abs(new)))) + (abs(new) - abs(new)))


def norm(what, old, new):
    return sqrt(squares(what, old, new) / N)


def length(what):
    return sqrt(sum_of(square(what * unit)))


def inside(theta):  # the state at t + theta used
    return y + dot(weights(theta), k)


def goal():  # the PI rule, and no more than MOST_STAGES
    return at_most(SAFETY * exp2(pi_goal(scale, past, fits, ALPHA, BETA)), 0.6 * MOST_STAGES * MOST_STAGES / (used * radius))


def remembered():  # log2 of the error norm
    return scale if scale > LOG2_LEAST_OLD else LOG2_LEAST_OLD


def begin():
    t, past, retry, steps, rejected, due, saved = t0, LOG2_LEAST_OLD, 0.0, 0.0, 0.0, inf, 0.0
    radius, fresh, way_length = 0.0, 0.0, 0.0
    f = right(t0, y, y)
    wild = strays(f, y)
    if not CHOOSES:
        h = h0
    if ADAPTIVE and CHOOSES and wild == 0.0:  # Hairer, Norsett, Wanner I, II.4
        slope = norm(f, y, y)
        trial, longest_first = trial_step(norm(y, y, y), slope, t1 - t0)
        x = y + trial * f
        q = right(t0 + trial, x, x)
        q = q - f
        steep = steepest(slope, norm(q, y, y) / trial)
        h = first_step(power(0.01 / steep, START_POWER), steep, longest_first, t0, t1 - t0, longest)
    code = RUNNING if wild == 0.0 else NON_FINITE


def step():
    if fresh <= 0.0:
        least = SMALL * SMALL * SMALL * SMALL * sqrt(sum_of(square(y)))  # for components at 0 where atol is nothing: squares overflow
        unit = 1.0 / above_zero(larger(larger(abs(y), atol / rtol), least))  # one large component shall not hide the others
        if not (way_length > 0.0 and way_length < inf):
            way = uneven(COMPONENT) / unit
            way_length = length(way)
        found, tries, settled = 0.0, 0.0, False
        while tries < MOST_TRIES and not settled:
            tiny = SMALL * sqrt(N) / way_length
            x = y + tiny * way
            q = right(t, x, x)
            x = x - y
            way = q - f
            size = length(x)
            way_length = length(way)
            before = found
            found = way_length / size if size > 0.0 else 0.0
            tries = tries + 1.0
            settled = not (found > 0.0 and found < inf) or (tries > 1.0 and abs(found - before) <= CLOSE * found)
        radius = WIDER * found if found < inf else inf
        fresh = KEPT
    many = stages_for(used * radius)
    error = inf  # more than MOST_STAGES: the step is too long
    if many <= MOST_STAGES:
        w0, w1 = chebyshev(many)
        # of the last two degrees: the polynomial and two derivatives at w0, b = bend / tilt^2, and the part of the step that stage has gone
        poly_old, poly, tilt_old, tilt, bend_old, bend = 1.0, w0, 0.0, 1.0, 0.0, 0.0
        b_old, b = 0.25 / (w0 * w0), 0.25 / (w0 * w0)
        gone_old, gone = 0.0, w1 * b
        first = gone * used
        w = y
        x = y + first * f
        stage = 2.0
        while stage <= many:
            poly_new, tilt_new = 2.0 * w0 * poly - poly_old, 2.0 * (poly + w0 * tilt) - tilt_old
            bend_new = 4.0 * tilt + 2.0 * w0 * bend - bend_old
            b_new = bend_new / (tilt_new * tilt_new)
            mu, nu, of_q = 2.0 * b_new * w0 / b, -b_new / b_old, 2.0 * b_new * w1 / b
            of_f, of_y = (b * poly - 1.0) * of_q, 1.0 - mu - nu
            q = right(t + gone * used, x, x)
            gone_new = mu * gone + nu * gone_old + of_q + of_f
            of_q, of_f = used * of_q, used * of_f
            w = of_y * y + mu * x + nu * w + of_q * q + of_f * f
            swap(w, x)
            poly_old, poly, tilt_old, tilt, bend_old, bend = poly, poly_new, tilt, tilt_new, bend, bend_new
            b_old, b, gone_old, gone = b, b_new, gone, gone_new
            stage = stage + 1.0
        z = x
        f_z = right(new, z, z)
        if ADAPTIVE:
            q = 0.8 * (y - z) + 0.4 * used * (f + f_z)
            error = norm(q, y, z)
            error = nan if error <= 1.0 and strays(f_z, z) != 0.0 else error
        else:
            error = 0.0 if strays(f_z, z) == 0.0 else nan
        if (SAVES or EVENTS) and error <= 1.0:  # the cubic through both states and slopes
            k[0] = used * f
            k[1] = z - y
            k[2] = used * f_z
    if ADAPTIVE:
        scale = log2(error if error > LEAST else LEAST)
    fresh = fresh - 1.0 if error <= 1.0 else 0.0
