"""A student rests on a plateau, then specialises: generalisation error, overlaps, and the length of the plateau.

Stands beside Saad and Solla's soft committee machine in the form of goldt2019dynamics (two students, two teachers, rate 1.5): a, e_g of
the equations beside online learning in N = 400 dimensions; b, the overlaps R of students and teachers are alike until the symmetry
breaks; c, the time at which e_g leaves the plateau grows by the same amount for every tenth of the first difference.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.models.classics.claims import FIRST, START, half_a_unit, online
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"
END, CHECKS, N = 150.0, (1.0, 5.0, 20.0), 400
FIRST_DIFFERENCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
FINE = {"rtol": 1e-12, "atol": 1e-14}
ESCAPE = ["escape: e_g - 0.02"]  # events of all runs, so that one right-hand side is compiled


def escape(small: float) -> float:
    """When e_g falls below .02, from Q = .2 on the diagonal and R = small on it."""
    given = {"params": {"eta_2": 0.0}, "initial": {"Q": np.diag([0.2, 0.2]), "R": small * np.eye(2), "v": 1.0}}
    run = odesim.integrate("classics.committee", **given, span=(0, 300), save=2, events=ESCAPE, **FINE)
    return float(run.events["escape"][-1]["t"])


def data(fast: bool) -> xr.Dataset:
    """e_g and R (t), e_g of online learning (seed, check), escape times (difference). fast: three seeds, not eight."""
    times = np.union1d(np.linspace(0, END, 601), list(FIRST))
    given = {"params": {"eta_2": 0.0}, "initial": {**START, "v": 1.0}}
    run = odesim.integrate("classics.committee", **given, span=(0, END), save=times, events=ESCAPE, **FINE)
    seeds = range(3 if fast else 8)
    return xr.Dataset(
        {
            "e_g": ("t", run.observables["e_g"]),
            "R": (("t", "student", "teacher"), run.y["R"]),
            "online": (("seed", "check"), [[online(N, seed, end) for end in CHECKS] for seed in seeds]),
            "escape": ("difference", [escape(small) for small in FIRST_DIFFERENCES]),
        },
        coords={"t": times, "seed": list(seeds), "check": list(CHECKS), "difference": list(FIRST_DIFFERENCES)},
        attrs={"eta": 1.5, "N": N, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes the mean and range of the online runs, and a line through the escape times."""
    with picture("A plateau, then specialisation", 55.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.plot(ds.t, ds.e_g, color=CATEGORIES[0], label="equations")
        mean = ds.online.mean("seed")
        reach = np.array([mean - ds.online.min("seed"), ds.online.max("seed") - mean])
        left.errorbar(
            ds.check, mean, reach, fmt="o", ms=3, lw=0.8, color=INK, label=f"online, N = {ds.N},\n{counted(ds.sizes['seed'], 'seed')}"
        )
        left.set(yscale="log", ylim=(1e-5, 1), xlabel="t = steps / N", ylabel="$e_g$")
        left.legend(loc="lower left")
        for j in range(2):
            for n in range(2):
                middle.plot(ds.t, ds.R[:, j, n], color=CATEGORIES[2 * j + n], ls=DASHES[2 * j + n], label=f"$R_{{{j}{n}}}$")
        middle.set(xlabel="t = steps / N", ylabel="overlap of student and teacher", ylim=(-0.1, 1.1))
        middle.legend(loc="upper left")
        right.plot(ds.difference, ds.escape, "o", ms=3, color=CATEGORIES[0])
        slope, start = np.polyfit(np.log(ds.difference.values[1:]), ds.escape.values[1:], 1)
        right.plot(ds.difference, start + slope * np.log(ds.difference), color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        right.set(xscale="log", xlabel="first difference of the students", ylabel="end of the plateau t")
        few_ticks(left, middle, right)
        few_log_ticks(left, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """e_g to nine digits, online learning within its spread, one delay for every tenth of the difference."""
    for t, want in FIRST.items():
        yield Feature(f"e_g at t = {t}", float(ds.e_g.sel(t=t)), want, half_a_unit(want), SCRIPT)
    for check in ds.check.values:
        found = ds.online.sel(check=check).values
        # four standard errors; Student's factor for three seeds is nearer to ten
        wide = (10 if found.size < 5 else 4) * found.std(ddof=1) / np.sqrt(found.size)
        yield Feature(f"online e_g at t = {check:g}", float(found.mean()), float(ds.e_g.sel(t=check)), float(wide))
    delays = -np.diff(-ds.escape.values)
    yield Feature("last delay over the one before", float(delays[-1] / delays[-2]), 1.0, 3e-4)  # of the order of the difference 1e-4
    early = ds.R.sel(t=slice(5, 20)).values
    yield Feature("t in 5..20: largest difference of overlaps", float(np.ptp(early, axis=(1, 2)).max()), 0.0, 0.05)
    yield Feature("at the end: smallest overlap of a student with its teacher", float(np.sort(ds.R.values[-1].ravel())[2]), 1.0, 0.02)
