"""Step control: the rules of every integrator, as scalar functions.

The loop of one explicit run compiles them. Kernels of lanes and threads of a GPU hold them. A Rosenbrock run on arrays calls them as they
are. Powers come from the caller: compiled code has its own (powers.py).

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (1993), II.4 (first step, p. 169); Hairer, Wanner II (1996), IV.2 (PI
rule) and IV.8, eqs. 8.27-8.28 (Gustafsson's rule; numbers as in their code rodas.f).
"""

from math import cos, inf, sqrt
from typing import Any

SAFETY = 0.9
"""Of the step that the error norm allows."""
REJECTED_GROW = 0.9
"""The most that follows a rejected step, in units of it."""
LOST = 0.25
"""The step that follows one whose error norm is not finite, in units of it."""
STIFF_SHRINK, STIFF_GROW = 0.2, 6.0
"""The factors of a step of a Rosenbrock method; an explicit one has its own."""
LEAST, LEAST_SQUARE = 1e-10, 1e-20
"""An error norm counts for no less, and its square."""
LOG2_LEAST_OLD, LEAST_OLD = -13.287712379549449, 1e-2
"""An older one counts for no less than 1e-4 in the PI rule, by its log2, and than 1e-2 in Gustafsson's."""
SHORTEST = 1e-300
"""A step of a Rosenbrock method is no shorter: the inverse of a shorter one overflows."""
SOON = 2.2e-10
"""Of the time passed: 1e5 smallest steps."""
SMALLEST = 2.2e-15
"""A step is no shorter, in parts of the time and of the time passed: some ten spacings of the numbers there."""


def trial_step(size: float, slope: float, span: float) -> tuple[float, float]:
    """A step at which to evaluate the second derivative, and the longest first step, from the norms of the state and its derivative."""
    # the numbers of II.4; the last test is ours: a quotient of two small numbers may be any, and a step of 1e-12 spans says nothing
    h = 0.01 * size / slope if slope > 0.0 else 0.0
    fair = size > 1e-5 and slope > 1e-5 and h > 1e-12 * span  # a state of 0 has no size to go by
    trial = h if fair else 1e-6 * span
    return (trial if trial < span else span), (100.0 * h if fair else span)


def steepest(slope: float, bend: float) -> float:
    """The norm for the first step: of the first derivative or, if larger and finite, of the second."""
    return bend if bend > slope and bend < 1e300 else slope


def first_step(guess: float, steep: float, most: float, t0: float, span: float, longest: float) -> float:
    """The first step; guess: (0.01/steep)^(1/p), where p is the power of h in the error norm. No step is above longest.

    It is no smaller than a step from t0 may be: whether that is short enough its error tells.
    """
    guess = guess if steep > 1e-15 and steep < 1e300 else 1e-6 * span
    guess = guess if guess < most else most
    guess = guess if guess > SMALLEST * abs(t0) else SMALLEST * abs(t0)
    guess = guess if guess < span else span
    return longest if guess > longest else guess


def step_end(t: float, h: float, t1: float) -> tuple[float, bool]:
    """The end of a step of h, and whether it is the last one: a step may be 1 % longer than planned."""
    # without it the last step would often be a sliver of rounding, which costs as much as any other and upsets the control
    last = t + 1.01 * h >= t1
    return (t1 if last else t + h), last


def longest_step(most: float | None) -> float:
    """The size at which steps are limited if none may be above `most`, not even the last one."""
    return inf if most is None else most / 1.01


def too_small(t: float, h: float, new: float, t0: float) -> bool:
    """Whether a step of h from t to new, of a run that began at t0, is lost in rounding."""
    return new == t or h < SMALLEST * abs(t) or h < SMALLEST * (t - t0)


def runs_away(value: float, slope: float, passed: float) -> bool:
    """Whether a component with this derivative, whose steps have become too small, would double soon, in units of the time passed."""
    grows = (value > 0.0 and slope > 0.0) or (value < 0.0 and slope < 0.0)
    return grows and abs(value) <= SOON * passed * abs(slope)


def pi_goal(size: float, old: float, fits: bool, alpha: float, beta: float) -> float:
    """log2 of error^-alpha old^beta, from log2 of the error norm and of the one accepted before, which counts if the step is accepted."""
    # after a rejected step the integral part alone: the older error belongs to another step than the one to be repeated
    goal = -alpha * size
    return goal + beta * old if fits else goal


def gustafsson(less: float, ratio: float, fits: bool) -> float:
    """The factor of Gustafsson's rule; less: error^(-1/p); ratio: SAFETY h / (h_old less_old), of the step accepted before."""
    factor, ahead = SAFETY * less, ratio * less * less
    return ahead if fits and ahead < factor else factor


def next_step(h: float, error: float, factor: float, again: bool, shrink: float, grow: float) -> float:
    """The step after h with this error norm, accepted if error <= 1, and a rule's factor, limited to shrink ... grow.

    again: the step before was rejected; the first one accepted after it does not grow.
    """
    # comparisons, not min and max: min(nan, x) is x in one language and nan in another, and a step that is not a number would be accepted
    # or repeated for ever. Here every comparison with NaN is false and ends in h * LOST
    grow = 1.0 if again else grow
    most = grow if error <= 1.0 else REJECTED_GROW
    factor = shrink if factor < shrink else factor
    factor = factor if factor < most else most
    return h * factor if error < inf else LOST * h


def at_most(h: float, longest: float) -> float:
    """A step of h, or the longest one allowed."""
    return longest if h > longest else h


def moment(k: int, t0: float, t1: float, step: float, total: int) -> float:
    """The time after k of `total` fixed steps."""
    # not t + step: a million additions would move the last time by their rounding, and lanes by another than one run
    return t0 + k * step if k < total else t1


def weight(coefficients: Any, degree: int, theta: float) -> float:
    """The weight of a stage inside a step, y(t + theta h) = y + h sum_j b_j(theta) k_j, by Horner's scheme.

    coefficients (degree,): of theta, theta^2, ... in b_j.
    """
    value = 0.0
    for p in range(degree):
        value = (value + coefficients[degree - 1 - p]) * theta
    return value


def move_back(numbers: Any, y: Any) -> None:
    """Moves y, component by component in parts of itself, to where its linear invariants have their values: one after another.

    numbers: as odesim.stepper.rosenbrock_run.conserved lays them out.
    """
    k = 1
    for _ in range(int(numbers[0])):
        count = int(numbers[k])
        rest, size, first = numbers[k + 1], 0.0, k + 2
        for j in range(count):
            term = numbers[first + count + j] * y[int(numbers[first + j])]
            size += term * term
            rest -= term
        if size > 0.0 and rest - rest == 0.0:
            for j in range(count):
                i = int(numbers[first + j])
                y[i] += y[i] * (numbers[first + count + j] * y[i] * (rest / size))
        k = first + 2 * count


# What the text of a step uses beside the rules.


def square(x: float) -> float:
    """x times itself."""
    return x * x


def larger(a: float, b: float) -> float:
    """The larger of two numbers; b where one is NaN."""
    return a if a > b else b


def above_zero(x: float) -> float:
    """x, or 1 where it is not above 0."""
    return x if x > 0.0 else 1.0


def slant(i: int) -> float:
    """Component i of a direction that has all frequencies, along each axis of a grid whatever its lengths."""
    # squares: cos(2.4 i) is one frequency, and slow along the other axis of a grid of 50 or 60 a row, where 2.4 times that is nearly a
    # whole number of turns. Power iterations then saw half of the spectral radius
    return cos(1.0 + 2.4 * i * i)


# A Runge-Kutta-Chebyshev step (stabilised.py).
DAMPING = 2 / 13
"""Of its stability polynomial, which is 1 - DAMPING/3 and less inside the stable interval."""
MOST_TRIES, CLOSE = 50, 0.01
"""Power iterations end after so many, or where the growth changes by less than this part."""
WIDER, KEPT = 1.2, 25
"""The radius that stages are counted for, in units of the one that was found, and how many steps it serves. All of these as in rkc.f."""
ROUNDINGS = 1e4
"""Its step is held to so many roundings at least: no finer, which leaves room for 30 stages."""


def uneven(i: int) -> float:
    """Component i of another such direction: a driver of one system has no cosine of its own, and that of a library has other bits."""
    x = 0.6180339887498949 * (i + 1)
    return x - float(int(x)) - 0.5


def stages_for(stretch: float) -> float:
    """The least number of stages that are stable for a step of this length in units of the spectral radius."""
    if not stretch < 1e15:
        return inf
    return float(int(sqrt(1.0 + 1.54 * stretch))) + 1.0


def chebyshev(many: float) -> tuple[float, float]:
    """w0 and w1 of a step of so many stages: 1 + DAMPING/many^2, and T'/T'' of the Chebyshev polynomial of this degree there."""
    w0 = 1.0 + DAMPING / (many * many)
    value_old, value, slope_old, slope, bend_old, bend = 1.0, w0, 0.0, 1.0, 0.0, 0.0
    degree = 1.0
    while degree < many:
        value_new, slope_new = 2.0 * w0 * value - value_old, 2.0 * (value + w0 * slope) - slope_old
        bend_new = 4.0 * slope + 2.0 * w0 * bend - bend_old
        value_old, value, slope_old, slope, bend_old, bend = value, value_new, slope, slope_new, bend, bend_new
        degree += 1.0
    return w0, slope / bend


# The rule by which a run or a member changes to a stiff method: stability holds its steps, and the rest is long. The spectral radius comes
# from power iterations on differences of the right-hand side. Members take the geometric mean of the last two growths: where units of
# components differ, each one alone may be far off.
FEW, MANY = 3, 12
"""Numbers of power iterations: MANY for a single run; FEW for a lane, and MANY where these show that stability holds the step.

FEW iterations for one lane alone cost as much as four steps of all lanes, MANY for a single run at most as much as two of its first 128.
"""
HELD = 0.5
"""The step is held by stability where it is, on average, above this fraction of the largest stable one."""
SHORT = 0.5
"""The rest of a run is not worth another method where it takes fewer steps than this, in units of those so far."""
FAR = 1e15
"""The most steps that a member is said to be from its end."""
