"""Twenty-two problems, fourteen of them stiff: what `method="auto"` costs beside the best of the methods that it chooses from.

    PYTHONPATH=. python benchmarks/problems.py [--rounds 5] [--first 0] [--json FILE] [PROBLEM ...]

CPU time of `odesim.integrate` as users call it, the end only, everything compiled: each method in turn, --rounds times, at the tolerance of
the problem. A method is left out where it fails or takes more than 200,000 steps,
an explicit one for a stiff problem 20,000. error: of the method that auto ends with, the largest
over the components in units of 1e-6 of the largest state or of the component itself, against the reference. --first 1 adds the first
call: a process and an empty cache of its own for auto and for the method that it ends with.

Stiff ones: F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4 (2008), and E. Hairer, G. Wanner, Solving
Ordinary Differential Equations II (1996), IV.1 and IV.10; Burgers' equation as in L. Petzold, Appl. Numer. Math. 3 (1987). The others:
E. Hairer, S. Norsett, G. Wanner, I (1993), II.10; T. Hull, W. Enright, B. Fellen, A. Sedgwick, Comparing Numerical Methods for Ordinary
Differential Equations (1972); E. Lorenz (1963, 1996).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from measuring import Report, arguments, seconds  # first: one thread

# isort: split
import numpy as np
from sympy import Interval, Piecewise, Rational, oo, pi, sin, symbols

import odesim
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes, time
from tests.support.stiff_set import SET, van_der_pol

EXPLICIT, STIFF = ("tsit5", "vern7", "dop853"), ("rodas4", "rodas5p")
MOST_STEPS, FEW_STEPS = 200_000, 20_000
COLUMNS = (
    *(
        ("problem", "name", ""),
        ("states", "states", "d"),
        ("rtol", "rtol", ".0e"),
        ("best of its own", "best", ""),
        ("ms", "best_ms", ".3g"),
    ),
    *(("auto ends with", "chosen", ""), ("auto, ms", "auto_ms", ".3g"), ("auto / best", "ratio", ".2f"), ("steps", "steps", "d")),
    *(("error", "error", ".1e"), ("first call, s", "first", ".1f"), ("auto's", "first_auto", ".1f"), ("ratio", "first_ratio", ".2f")),
)


@dataclass(frozen=True)
class Problem:
    """A System with its tolerances and the sizes of its axes; only rtol = None is not asked for."""

    system: Callable[[], System]
    stiff: bool
    rtol: float = 1e-6
    atol: float = 1e-9
    sizes: dict[str, int] | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `odesim.integrate` but the method."""
        named = {} if self.sizes is None else {"sizes": self.sizes}
        return {**named, "rtol": self.rtol, "atol": self.atol, "max_steps": MOST_STEPS}


def make(name: str, equations: Any, start: Any, end: float, **more: Any) -> System:
    """A System without parameters."""
    return System(
        name=f"benchmark.{name}",
        source=Source("none", "benchmarks/problems.py"),
        equations=equations,
        initial=dict(zip(equations, start, strict=True)),
        span=(0.0, end),
        **{"axes": {}, "params": (), **more},
    )


def bodies(name: str, masses: Any, places: Any, speeds: Any, end: float, strength: float = 1.0) -> System:
    """Bodies that attract each other; places and speeds (bodies, dimensions)."""
    n, dimensions = np.shape(places)
    q = [symbols(f"q{i}_0:{dimensions}") for i in range(n)]
    v = [symbols(f"v{i}_0:{dimensions}") for i in range(n)]
    equations: dict[Any, Any] = {}
    for i in range(n):
        for k in range(dimensions):
            equations[q[i][k]] = v[i][k]
    for i in range(n):
        for k in range(dimensions):
            pull: Any = 0
            for j in range(n):
                if j != i:
                    apart = sum((a - b) ** 2 for a, b in zip(q[i], q[j], strict=True))
                    pull += strength * masses[j] * (q[j][k] - q[i][k]) / apart ** Rational(3, 2)
            equations[v[i][k]] = pull
    return make(name, equations, [*np.ravel(places), *np.ravel(speeds)], end)


def pleiades() -> System:
    """Seven stars in a plane."""
    x, y = (3, 3, -1, -3, 2, -2, 2), (3, -3, 2, 0, 0, -4, 4)
    vx, vy = (0, 0, 0, 0, 0, 1.75, -1.5), (0, 0, 0, -1.25, 1, 0, 0)
    return bodies("pleiades", range(1, 8), np.transpose([x, y]).astype(float), np.transpose([vx, vy]).astype(float), 3.0)


def three_bodies() -> System:
    """Masses 3, 4, 5 at rest in the corners of Pythagoras' triangle (Burrau 1913), up to before their closest passage."""
    return bodies("three_bodies", (3, 4, 5), [[1.0, 3.0], [-2.0, -1.0], [1.0, -1.0]], np.zeros((3, 2)), 10.0)


def planets() -> System:
    """DETEST C5: the five outer planets around the sun."""
    masses = (0.000954786104043, 0.000285583733151, 0.0000437273164546, 0.0000517759138449, 0.00000277777777778)
    sun, square = 1.00000597682, 2.95912208286
    places = (
        (3.42947415189, 3.35386959711, 1.35494901715),
        (6.64145542550, 5.97156957878, 2.18231499728),
        (11.2630437207, 14.6952576794, 6.27960525067),
        (-30.1552268759, 1.65699966404, 1.43785752721),
        (-21.1238353380, 28.4465098142, 15.3882659679),
    )
    speeds = (
        (-0.557160570446, 0.505696783289, 0.230578543901),
        (-0.415570776342, 0.365682722812, 0.169143213293),
        (-0.325325669158, 0.189706021964, 0.0877265322780),
        (-0.0240476254170, -0.287659532608, -0.117219543175),
        (-0.176860753121, -0.216393453025, -0.0148647893090),
    )
    q = [symbols(f"q{i}_0:3") for i in range(5)]
    v = [symbols(f"v{i}_0:3") for i in range(5)]

    def cubed(d: Any) -> Any:
        return sum(c**2 for c in d) ** Rational(3, 2)

    equations: dict[Any, Any] = {q[i][k]: v[i][k] for i in range(5) for k in range(3)}
    for i in range(5):
        for k in range(3):
            rate = -(sun + masses[i]) * q[i][k] / cubed(q[i])
            for j in range(5):
                if j != i:
                    apart = [a - b for a, b in zip(q[j], q[i], strict=True)]
                    rate += masses[j] * (apart[k] / cubed(apart) - q[j][k] / cubed(q[j]))
            equations[v[i][k]] = square * rate
    return make("planets", equations, [*np.ravel(places), *np.ravel(speeds)], 20.0)


def arenstorf() -> System:
    """A satellite of the earth and the moon on a closed way."""
    mu = 0.012277471
    x, y, u, v = symbols("x y u v")
    earth, moon = ((x + mu) ** 2 + y**2) ** Rational(3, 2), ((x - (1 - mu)) ** 2 + y**2) ** Rational(3, 2)
    equations = {
        x: u,
        y: v,
        u: x + 2 * v - (1 - mu) * (x + mu) / earth - mu * (x - (1 - mu)) / moon,
        v: y - 2 * u - (1 - mu) * y / earth - mu * y / moon,
    }
    return make("arenstorf", equations, (0.994, 0.0, 0.0, -2.00158510637908252240537862224), 17.0652165601579625588917206249)


def kepler(eccentricity: float, end: float, name: str) -> System:
    """Two bodies, from their nearest point."""
    x, y, u, v = symbols("x y u v")
    cube = (x**2 + y**2) ** Rational(3, 2)
    start = (1 - eccentricity, 0.0, 0.0, float(np.sqrt((1 + eccentricity) / (1 - eccentricity))))
    return make(name, {x: u, y: v, u: -x / cube, v: -y / cube}, start, end)


def lorenz() -> System:
    """Three equations of convection; later, errors have grown by e^15."""
    x, y, z = symbols("x y z")
    return make("lorenz", {x: 10 * (y - x), y: x * (28 - z) - y, z: x * y - Rational(8, 3) * z}, (1.0, 1.0, 1.0), 16.0)


def lorenz96() -> System:
    """40 values around a circle of latitude, F = 8."""
    (i,), (N,) = index("i"), sizes("N")
    x, a = (IndexedBase(n, shape=(N,)) for n in ("x", "a"))
    start = Param(a, 8.0, Interval(-oo, oo), "start")
    around = {x[i]: (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + 8}
    return make("lorenz96", around, [a[i] + sin(i)], 5.0, axes={i: N}, params=(start,), boundary={i: "periodic"})


def heat() -> System:
    """u_t = u_xx, 0 at both ends, from half a sine and a finer one."""
    (i,), (N,) = index("i"), sizes("N")
    u = IndexedBase("u", shape=(N,))
    x = (i + 1) / (N + 1)
    spread = {u[i]: (N + 1) ** 2 * (u[i - 1] - 2 * u[i] + u[i + 1])}
    return make("heat", spread, [sin(pi * x) + sin(5 * pi * x)], 0.5, axes={i: N}, boundary={i: "zero"})


def brusselator() -> System:
    """In one dimension, alpha = 1/50, u = 1 and v = 3 at both ends; the states are their distances from these."""
    (i,), (N,) = index("i"), sizes("N")
    u, v = (IndexedBase(n, shape=(N,)) for n in "uv")
    x, alpha = (i + 1) / (N + 1), Rational(1, 50) * (N + 1) ** 2
    a, b = 1 + u[i], 3 + v[i]
    equations = {
        u[i]: 1 + a**2 * b - 4 * a + alpha * (u[i - 1] - 2 * u[i] + u[i + 1]),
        v[i]: 3 * a - a**2 * b + alpha * (v[i - 1] - 2 * v[i] + v[i + 1]),
    }
    return make("brusselator", equations, [sin(2 * pi * x), 0.0], 10.0, axes={i: N}, boundary={i: "zero"})


def brusselator2d() -> System:
    """On a torus, alpha = 1/10, with a source in a disk from t = 1.1 on."""
    (i, j), (N,) = index("i j"), sizes("N")
    u, v = (IndexedBase(n, shape=(N, N)) for n in "uv")
    x, y, alpha = i / N, j / N, Rational(1, 10) * N**2
    # on 100 x 100 cells twelve are on the rim, whom rounding would let in or not
    disk = (x - Rational(3, 10)) ** 2 + (y - Rational(3, 5)) ** 2 <= Rational(1, 100) + 1e-9
    source = Piecewise((Piecewise((5, disk), (0, True)), time >= Rational(11, 10)), (0, True))

    def spread(w: Any) -> Any:
        return alpha * (w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1] - 4 * w[i, j])

    equations = {
        u[i, j]: 1 + u[i, j] ** 2 * v[i, j] - Rational(22, 5) * u[i, j] + spread(u) + source,
        v[i, j]: Rational(17, 5) * u[i, j] - u[i, j] ** 2 * v[i, j] + spread(v),
    }
    start = [22 * y * (1 - y) ** Rational(3, 2), 27 * x * (1 - x) ** Rational(3, 2)]
    return make("brusselator2d", equations, start, 11.5, axes={i: N, j: N}, boundary={i: "periodic", j: "periodic"})


def burgers() -> System:
    """u_t + (u^2 / 2)_x = nu u_xx, nu = 1/1000, 0 at both ends: a wave that becomes steep and runs."""
    (i,), (N,) = index("i"), sizes("N")
    u = IndexedBase("u", shape=(N,))
    x, nu = (i + 1) / (N + 1), Rational(1, 1000)
    flow = (u[i - 1] ** 2 - u[i + 1] ** 2) * (N + 1) / 4
    rate = flow + nu * (N + 1) ** 2 * (u[i - 1] - 2 * u[i] + u[i + 1])
    return make("burgers", {u[i]: rate}, [sin(2 * pi * x) + sin(pi * x) / 2], 1.0, axes={i: N}, boundary={i: "zero"})


def medakzo() -> System:
    """Antibodies in a tissue with a tumour: k = 100, c = 4; the inflow stops at t = 5."""
    (i,), (N,) = index("i"), sizes("N")
    u, v = (IndexedBase(n, shape=(N,)) for n in "uv")
    z = (i + 1) / N
    alpha, beta = 2 * (z - 1) ** 3 / 16, (z - 1) ** 4 / 16
    inflow = Piecewise((2, time <= 5), (0, True))
    before = u[i - 1] + Piecewise((inflow, i < 1), (0, True))  # beyond the start u is the inflow, beyond the end alpha = beta = 0
    equations = {
        u[i]: alpha * (u[i + 1] - before) * N / 2 + beta * (before - 2 * u[i] + u[i + 1]) * N**2 - 100 * u[i] * v[i],
        v[i]: -100 * u[i] * v[i],
    }
    return make("medakzo", equations, [0.0, 1.0], 20.0, axes={i: N}, boundary={i: "zero"})


PROBLEMS = {
    "HIRES": Problem(lambda: SET["hires"].system, True, atol=1e-10),
    "Pollution": Problem(lambda: SET["pollution"].system, True, atol=1e-14),
    "Robertson": Problem(lambda: SET["robertson"].system, True, atol=1e-14),
    "Oregonator": Problem(lambda: SET["orego"].system, True),
    "van der Pol, 1e3": Problem(lambda: replace(van_der_pol(1e3), span=(0.0, 2.0)), True),
    "van der Pol, 1e6": Problem(lambda: van_der_pol(1e6), True),
    "E5": Problem(lambda: SET["e5"].system, True, atol=1e-24),
    "ring modulator": Problem(lambda: SET["ring_modulator"].system, True),
    "MEDAKZO": Problem(medakzo, True, sizes={"N": 200}),
    "heat": Problem(heat, True, sizes={"N": 400}),
    "Brusselator": Problem(brusselator, True, sizes={"N": 200}),
    "Brusselator 2-D": Problem(brusselator2d, True, sizes={"N": 24}),
    "Brusselator 2-D, 100": Problem(brusselator2d, True, sizes={"N": 100}),
    "Burgers": Problem(burgers, True, sizes={"N": 2000}),
    "Pleiades": Problem(pleiades, False),
    "Lorenz": Problem(lorenz, False),
    "Lorenz-96": Problem(lorenz96, False, sizes={"N": 40}),
    "three bodies": Problem(three_bodies, False),
    "Arenstorf": Problem(arenstorf, False),
    "planets, C5": Problem(planets, False),
    "D5": Problem(lambda: kepler(0.9, 20.0, "d5"), False),
    "Kepler orbits": Problem(lambda: kepler(0.5, 200.0, "kepler"), False),
}


def end(run: Any) -> np.ndarray:
    """The last state of a run as one vector."""
    return np.concatenate([np.ravel(v[-1]) for v in run.y.values()])


def reference(problem: Problem, system: System) -> np.ndarray:
    """The end at tolerances 1,000 times smaller, for stiff ones 100 times."""
    part = 1e-2 if problem.stiff else 1e-3
    tight = {**problem.arguments(), "rtol": max(part * problem.rtol, 1e-12), "atol": part * problem.atol}
    return end(odesim.integrate(system, method="rodas5p" if problem.stiff else "vern7", **tight))


def measure(name: str, rounds: int, first: bool) -> dict[str, Any]:
    """A row of the table."""
    problem = PROBLEMS[name]
    system = problem.system()
    words = problem.arguments()

    def run(method: str) -> Any:
        few = {"max_steps": FEW_STEPS} if problem.stiff and method in EXPLICIT and method != chosen.method else {}
        return odesim.integrate(system, method=method, **words | few)

    chosen = odesim.integrate(system, **words)
    methods = ["auto"]
    for method in dict.fromkeys([chosen.method, *((*STIFF, "tsit5") if problem.stiff else EXPLICIT)]):
        try:
            trial = run(method)
        except odesim.OdesimError as error:
            print(f"{name}, {method}: {error}", file=sys.stderr)
            continue
        if trial.ok:
            methods.append(method)
    times: dict[str, list[float]] = {method: [] for method in methods}
    limit = min(seconds(lambda method=method: run(method)) for method in methods[1:]) * 30  # type: ignore[misc]
    for _ in range(rounds):
        for method in methods:
            if not times[method] or times[method][-1] < limit:
                times[method].append(seconds(lambda method=method: run(method)))  # type: ignore[misc]
    ms = {method: 1e3 * float(np.median(t)) for method, t in times.items()}
    best = min((m for m in methods if m != "auto"), key=lambda m: ms[m])
    exact, final = reference(problem, system), end(chosen)
    unit = np.maximum(np.abs(exact), 1e-6 * np.max(np.abs(exact)))
    row = {
        "name": name,
        "states": len(final),
        "rtol": problem.rtol,
        "best": best,
        "best_ms": ms[best],
        "chosen": chosen.method,
        "auto_ms": ms["auto"],
        "ratio": ms["auto"] / ms[best],
        "steps": int(chosen.stats["steps"]),
        "error": float(np.max(np.abs(final - exact) / unit)),
        "why": chosen.attrs["auto"],
        "ms": ms,
    }
    if first:
        row |= {"first": first_call(name, chosen.method), "first_auto": first_call(name, "auto")}
        row["first_ratio"] = row["first_auto"] / row["first"]
    return row


FIRST = """
import sys, time
import problems, odesim
name, method = sys.argv[1:]
problem = problems.PROBLEMS[name]
system = problem.system()
begun = time.process_time()
odesim.integrate(system, method=method, **problem.arguments())
print(time.process_time() - begun)
"""


def first_call(name: str, method: str) -> float:
    """CPU seconds of the first call in a process and an empty cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "ODESIM_CACHE_DIR": cache, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
        shown = subprocess.run(
            [sys.executable, "-c", FIRST, name, method], env=environment, capture_output=True, text=True, check=True
        ).stdout
    return float(shown)


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5, first=0)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    given = parser.parse_args()
    report = Report("problems")
    rows = []
    for name in given.problems:
        rows.append(measure(name, given.rounds, bool(given.first)))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    shown = [c for c in COLUMNS if given.first or not c[1].startswith("first")]
    report.add({"title": "auto beside the best of its own methods", "columns": shown, "rows": rows})
    report.write(given.json)


if __name__ == "__main__":
    main()
