"""What the benchmarks are held against, and where the time goes in each line that is missed.

A goal's key is the name under which a benchmark's JSON has the number. Times are CPU time, user + system, of one thread; a ratio is the
median of rounds in which the two take turns; what is measured with an error beyond what is allowed (10 times the tolerance, 20 with
saved points) counts as missed.
"""

from dataclasses import dataclass

MOST, LEAST = "at most", "at least"


@dataclass(frozen=True)
class Goal:
    """A bound for the number `key` of a benchmark, and the one beyond it, where there is one. where: what takes the time, by counts."""

    key: str
    benchmark: str
    text: str
    sense: str
    must: float
    beyond: float | None = None
    where: str = ""

    def met(self, value: float, bound: float) -> bool:
        """Whether the value is on the right side of the bound."""
        return value <= bound if self.sense == MOST else value >= bound

    def verdict(self, value: float | None) -> str:
        """beyond, met or missed."""
        if value is None or not self.met(value, self.must):
            return "missed"
        return "beyond" if self.beyond is not None and self.met(value, self.beyond) else "met"


GOALS = (
    Goal("W1-6 µs", "ensemble", "W1 at 1e-6, µs a trajectory", MOST, 1.9, 1.45),
    Goal("W1-6 x heyoka", "ensemble", "W1 at 1e-6, heyoka / odesim", LEAST, 2, 2.7),
    Goal("W1-6 x CyRK", "ensemble", "W1 at 1e-6, CyRK / odesim", LEAST, 6),
    Goal("W1-6 x diffrax", "ensemble", "W1 at 1e-6, diffrax / odesim", LEAST, 15),
    Goal("W1-6 x scipy", "ensemble", "W1 at 1e-6, scipy / odesim", LEAST, 400),
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
    Goal("two threads, wall", "modes", "two threads, wall time of one / of two", LEAST, 1.9),
    Goal("two threads, CPU", "modes", "two threads, growth of CPU time, %", MOST, 3),
    Goal("odesim --help, warm", "latency", "`odesim --help`, s of CPU", MOST, 0.15, 0.06),
    Goal("odesim integrate joma.nonlinear --json, warm", "latency", "`odesim integrate joma.nonlinear --json`, s", MOST, 0.9, 0.4),
    Goal("odesim integrate joma.nonlinear --json, cold", "latency", "the same with an empty cache, s", MOST, 5, 3),
    Goal("strict W1-6", "modes", "strict mode / default, W1 at 1e-6", MOST, 1.5, 1.25),
    Goal("strict W2", "modes", "strict mode / default, W2", MOST, 1.5, 1.25),
    Goal("train 1", "train", "(Y, Z) training, 1 query, steps a second", LEAST, 2500),
    Goal("train 3", "train", "(Y, Z) training, 3 queries, steps a second", LEAST, 1500),
    Goal("train 10", "train", "(Y, Z) training, 10 queries, steps a second", LEAST, 500),
    Goal("transformer", "train_transformer", "transformer, odesim / torch, worst of 4", MOST, 1.5),
)
