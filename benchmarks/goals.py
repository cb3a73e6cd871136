"""The goals of the benchmarks, and where the time goes for those that are missed.

A goal's key is the name under which a benchmark's JSON has the number. Times are CPU time, user + system, of one thread; a ratio is the
median of rounds in which the two take turns; what is measured with an error beyond what is allowed (10 times the tolerance, 20 with
saved points) counts as missed.
"""

from dataclasses import dataclass

MOST, LEAST = "at most", "at least"


@dataclass(frozen=True)
class Goal:
    """A bound for the number `key` of a benchmark, and the one beyond it, where there is one."""

    key: str
    benchmark: str
    text: str
    sense: str
    must: float
    beyond: float | None = None

    def met(self, value: float, bound: float) -> bool:
        """Whether the value is on the right-hand side of the bound."""
        return value <= bound if self.sense == MOST else value >= bound

    def verdict(self, value: float | None) -> str:
        """`beyond`, `met` or `missed`, for a measured value or None."""
        if value is None or not self.met(value, self.must):
            return "missed"
        return "beyond" if self.beyond is not None and self.met(value, self.beyond) else "met"


GOALS = (
    Goal("W1-6 µs", "ensemble", "W1 at 1e-6, µs a trajectory", MOST, 1.9, 1.45),
    Goal("W1-6 x heyoka", "ensemble", "W1 at 1e-6, heyoka / odesim", LEAST, 2, 2.7),
    Goal("W1-6 x CyRK", "ensemble", "W1 at 1e-6, CyRK / odesim", LEAST, 6),
    Goal("W1-6 x diffrax", "ensemble", "W1 at 1e-6, diffrax / odesim", LEAST, 15),
    Goal("W1-6 x scipy", "ensemble", "W1 at 1e-6, scipy / odesim", LEAST, 400),
    Goal("W1e / W1", "ensemble", "W1 at 1e-6 as shipped, with its 4 events / without", MOST, 1.3),
    Goal("W1e x heyoka", "ensemble", "W1 at 1e-6 with its events, heyoka / odesim", LEAST, 2),
    Goal("W1-9 µs", "ensemble", "W1 at 1e-9, µs a trajectory", MOST, 2.9, 2.0),
    Goal("W1-9 x heyoka", "ensemble", "W1 at 1e-9, heyoka / odesim", LEAST, 1.7),
    Goal("W1s µs", "ensemble", "W1s, 100 saved points, µs a trajectory", MOST, 3.5, 2.9),
    Goal("W1s x heyoka", "ensemble", "W1s, heyoka / odesim", LEAST, 4),
    Goal("W1s error", "ensemble", "W1s, worst saved point, in tolerances", MOST, 20),
    Goal("W2 µs", "ensemble", "W2 at 1e-8, µs a trajectory", MOST, 0.65, 0.48),
    Goal("W2 x heyoka", "ensemble", "W2, heyoka / odesim", LEAST, 2),
    Goal("W2 x CyRK", "ensemble", "W2, CyRK / odesim", LEAST, 10),
    Goal("W2 x diffrax", "ensemble", "W2, diffrax / odesim", LEAST, 50),
    Goal("W2f tsit5 ns", "fixed", "W2f, tsit5, ns a step", MOST, 4, 3.2),
    Goal("W2f rk4 ns", "fixed", "W2f, rk4, ns a step", MOST, 4, 3.2),
    Goal("W4r µs", "stiff", "W4r, error 1e-5, µs a trajectory", MOST, 4, 2.3),
    Goal("W4r x LSODA", "stiff", "W4r, numbalsoda's LSODA / odesim", LEAST, 40),
    Goal("W4j µs", "stiff", "W4j, error 5e-6, µs a trajectory", MOST, 9, 5.4),
    Goal("W4j x LSODA", "stiff", "W4j, numbalsoda's LSODA / odesim", LEAST, 15),
    Goal("W3 1e+04", "wide", "W3, M = 1e4, scipy's RK45 / odesim at equal error", LEAST, 4, 6),
    Goal("W3 1e+05", "wide", "W3, M = 1e5", LEAST, 4, 5),
    Goal("W3 1e+06", "wide", "W3, M = 1e6", LEAST, 3, 4),
    Goal("contractions large", "contractions", "sums of products, worst of 12: numpy / odesim, large", LEAST, 1),
    Goal("contractions small", "contractions", "the same, small", LEAST, 2),
    Goal("contractions first", "contractions", "the same, longest first call, s", MOST, 10),
    Goal("two threads, wall", "modes", "two threads, wall time of one / of two", LEAST, 1.9),
    Goal("two threads, CPU", "modes", "two threads, growth of CPU time, %", MOST, 3),
    Goal("--help, warm", "latency", "`odesim --help`, s of CPU", MOST, 0.15, 0.06),
    Goal("integrate, warm", "latency", "`odesim integrate joma.nonlinear --json`, s", MOST, 0.9, 0.4),
    Goal("integrate, cold", "latency", "the same with an empty cache, s", MOST, 5, 3),
    Goal("strict W1-6", "modes", "strict mode / default, W1 at 1e-6", MOST, 1.5, 1.25),
    Goal("strict W2", "modes", "strict mode / default, W2", MOST, 1.5, 1.25),
    Goal("train 1", "train", "(Y, Z) training, 1 query, steps a second", LEAST, 2500),
    Goal("train 3", "train", "(Y, Z) training, 3 queries, steps a second", LEAST, 1500),
    Goal("train 10", "train", "(Y, Z) training, 10 queries, steps a second", LEAST, 500),
    Goal("gpu strict", "gpu", "GPU: entries of a strict run that are not the processor's", MOST, 0),
    Goal("gpu W2 ms", "gpu", "GPU: W2, 1e5 members, kernel, ms", MOST, 1),
    Goal("gpu W2 x diffrax", "gpu", "GPU: W2, diffrax on the same card / odesim's kernel", LEAST, 20),
    Goal("gpu W1 1e+07 s", "gpu", "GPU: W1, 1e7 members, whole call, s", MOST, 1),
    Goal("gpu W3 1e+08", "gpu", "GPU: W3, M = 1e8, share of the bandwidth of a copy", LEAST, 0.6),
    Goal("transformer", "train_transformer", "transformer, odesim / torch, worst of 4", MOST, 1.5),
)

# what takes the time, of the code of 2026-11-20: an attempt is a step, accepted or not; counts from the compiled kernels
WHERE = {
    "W1-6 µs": (
        "51.5 step attempts (4.4 rejected) of 6 right-hand sides, 41 ns each. The compiled run has 2374 instructions on 8 lanes, "
        "first step included: 1085 multiply, add or both, 34 divide, 709 touch the stack: 7 stages of 4 components, state "
        "and parameters do not fit 32 registers. 24 exponentials of 0.70 ns are 17 of the 41 ns"
    ),
    "W1-6 x diffrax": "diffrax with 20 000 members takes 21.8 µs; with more it waits longer for the slowest of them",
    "W1e / W1": "of .5 µs more some .25 are the event functions at 3 more places of every step and the test of what they show, "
    "the rest branches and 4 zeros",
    "W1-9 µs": (
        "dop853: 44.8 attempts (7.6 rejected) of 12 right-hand sides, 74 ns each, 48 exponentials 34 of them; 1423 of 3733 "
        "instructions touch the stack. vern7 has 59.2 attempts"
    ),
    "W1s µs": (
        "the steps of W1 (1.8), and for each of 100 points 4 components of a polynomial in powers of theta, made once a step for 8 lanes; "
        "3.2 kB written a trajectory into fresh pages. The kernel alone took 3.1 where a call took 3.7"
    ),
    "W3 1e+04": "of 2.6 ms 1.85 in 140 stages, 0.25 in 23 error norms, 0.4 in Python before and after",
    "two threads, wall": "a loop of arithmetic alone gains what its row in the table says; one thread makes the Dataset",
    "W1s x heyoka": "from 2.3 to 4.3 in runs on one day: odesim writes 3.2 kB a trajectory into fresh pages; heyoka's Taylor series are "
    "their own dense output",
    "W2 µs": (
        "dop853: 22.2 attempts (2.4 rejected) of 12 right-hand sides, 30 ns each; 1277 instructions on 8 lanes, 527 multiply, add or"
        " both, 39 divide, 5 roots, 442 touch the stack"
    ),
    "W2f tsit5 ns": (
        "93 multiply, add or both and 6 subtractions on 8 lanes a step, no stage on the stack: 3.2 ns where one a cycle is done at 3.6 GHz;"
        " 10 (y - x) is written 10 y - 10 x, 6 of the 93"
    ),
    "W4j µs": "rodas4: 202 steps of 6 stages, 44 ns each; the exponentials of right-hand side and Jacobian are shared",
    "W4j x LSODA": "LSODA with 2500 members in a compiled loop: 129 µs",
    "integrate, warm": "numpy 0.11 s, sympy 0.28 s, the rest odesim: System to text, which names the cached code, and the output",
    "integrate, cold": "numba types and lowers the integrator (2.5 s) and the model (1.4 s), imports 0.6 s, LLVM the rest",
}
