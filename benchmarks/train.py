"""Reference training: steps a second of the one-layer (Y, Z) model on one core, contexts drawn and parameters updated.

python benchmarks/train.py [--rounds 7] [--seeds 1,10] [--dtype float64] [--json FILE]
python benchmarks/train.py --entropies | --untrained

Syn-Medium of tian2023scan: 1, 3 or 10 queries of two next tokens each, torch's start, batches of 128 sequences of 128 tokens, SGD with
momentum 0.9. A step of R seeds counts as R. All cases take turns in one process, and each new round goes on training where the last
one ended; a case's number is its best round, beside its median. --entropies: instead, the table of Fig. 6, replayed. --untrained:
instead, Table 1 of tian2023joma beside the same networks before training, from the published runs' own seeds.
"""

import time
from pathlib import Path
from typing import Any

from measuring import Report, arguments  # first: one thread

# isort: split
import numpy as np

from odesim.lab.tasks import load_task
from odesim.lab.training.loop import initial_params
from odesim.lab.training.optimizers import make_optimizer
from odesim.plot.figures import load_figure

QUERIES = (1, 3, 10)
TABLE = Path(__file__).parents[1] / "figures" / "published" / "joma_table1.csv"
COLUMNS = (
    ("queries", "queries", "d"),
    ("seeds", "seeds", "d"),
    ("steps/s, best", "best", ".0f"),
    ("median", "median", ".0f"),
    ("drawing, µs a step", "drawing_us", ".0f"),
)
STEPS = 256  # of a round; contexts are drawn 64 steps at a time


class Case:
    """A training that continues from round to round."""

    def __init__(self, queries: int, seeds: int, dtype: str) -> None:
        task = load_task("scan_snap")
        values = {setting.name: setting.default for setting in task.settings}
        values |= {"num_last": queries, "num_next_per_last": 2, "init": "torch"}
        self.queries, self.seeds = queries, seeds
        self.experiment = task.make(values, seeds=range(seeds), dtype=dtype)
        self.params = initial_params(self.experiment, dtype)
        self.optimizer = make_optimizer(self.experiment.optimizer, self.experiment.model.groups, self.params)
        self.done = 0

    def round(self) -> tuple[float, float]:
        """(steps per second, microseconds per step and seed for drawing contexts) of a round."""
        drawing, begun = 0.0, time.perf_counter()
        for i in range(self.done, self.done + STEPS):
            before = time.perf_counter()
            batch = self.experiment.stream(i)
            drawing += time.perf_counter() - before
            self.optimizer.update(self.params, self.experiment.model.loss_and_gradients(self.params, batch)[1])
        self.done += STEPS
        steps = STEPS * self.seeds
        return steps / (time.perf_counter() - begun), 1e6 * drawing / steps


def speed_rows(rounds: int, seeds: list[int], dtype: str) -> list[dict[str, Any]]:
    """A row for each case."""
    cases = [Case(queries, count, dtype) for queries in QUERIES for count in seeds]
    for case in cases:
        case.round()
    measured = np.array([[case.round() for case in cases] for _ in range(rounds)])  # (rounds, cases, 2)
    return [
        {
            "queries": case.queries,
            "seeds": case.seeds,
            "best": float(rates[:, 0].max()),
            "median": float(np.median(rates[:, 0])),
            "drawing_us": float(rates[:, 1].min()),
        }
        for case, rates in zip(cases, measured.swapaxes(0, 1), strict=True)
    ]


def entropy_table() -> str:
    """Fig. 6, published and replayed means and standard deviations over ten seeds: Markdown."""
    ds = load_figure("scan_snap_fig6").data(False)
    ours, spread = ds.entropy.mean("seed").values, ds.entropy.std("seed", ddof=1).values
    ratios = " | ".join(f"ratio {ratio}" for ratio in ds.ratio.values)
    lines = [f"| queries | eta_Z | {ratios} |", "|---" * (2 + ds.sizes["ratio"]) + "|"]
    for i, j in np.ndindex(ours.shape[:2]):
        cells = [
            f"{ds['mean'].values[i, j, k]:.3f}±{ds.sd.values[i, j, k]:.3f}, {ours[i, j, k]:.5f}±{spread[i, j, k]:.5f}"
            for k in range(ours.shape[2])
        ]
        lines.append(f"| {ds.num_last.values[i]} | {ds.eta_Z.values[j]:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def untrained_table() -> str:
    """Table 1 of tian2023joma, published and of the untrained networks of its seeds, 1 to 5: Markdown."""
    task, layers = load_task("hierarchy_dag"), range(2)
    values = {setting.name: setting.default for setting in task.settings} | {"width": 1024, "rng": "official"}
    names = ("num_classes", "num_children", "n0", "n1")
    lines = ["| classes | children | latents | s = 0: published | untrained | s = 1: published | untrained |", "|---" * 7 + "|"]
    for row in np.loadtxt(TABLE, delimiter=",", skiprows=1):
        own = dict(zip(names, row[:4].astype(int).tolist(), strict=True))
        found = []
        for seed in range(1, 6):  # one after the other, for memory
            experiment = task.make({**values, **own}, seeds=(seed,))
            (ncorr,) = (observable for observable in experiment.model.observables if observable.name == "NCorr")
            found.append(ncorr.function(initial_params(experiment, "float64"))[0])
        mean, sd = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        cells = [f"{row[4 + 2 * s]:.2f}±{row[5 + 2 * s]:.2f} | {mean[s]:.4f}±{sd[s]:.4f}" for s in layers]
        lines.append(f"| {own['num_classes']} | {own['num_children']} | {own['n0']}, {own['n1']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Runs the benchmark: measures, prints, and writes JSON for --json."""
    parser = arguments(__doc__, rounds=7, seeds="1,10", dtype="float64")
    parser.add_argument("--entropies", action="store_true")
    parser.add_argument("--untrained", action="store_true")
    options = parser.parse_args()
    if options.entropies or options.untrained:
        print(entropy_table() if options.entropies else untrained_table())
        return
    report, rows = Report("train"), speed_rows(options.rounds, [int(count) for count in options.seeds.split(",")], options.dtype)
    found = {f"train {row['queries']}": row["best"] for row in rows if row["seeds"] == 1}
    report.add({"title": f"Steps a second, {options.dtype}", "columns": COLUMNS, "rows": rows}, **found)
    report.write(options.json, ("odesim", "numpy"))


if __name__ == "__main__":
    main()
