"""How long an ensemble of a middling system takes when nothing is compiled, and again: CPU seconds of `odesim.ensemble` as users call it.

    python benchmarks/first_calls.py [--rounds 3] [--json FILE] [CASE ...]

Each first call has a process and an empty cache of its own, and includes the import of odesim. The engine is the one that odesim chose:
written-out lanes, lanes with loops, or one member after another. "one by one": the second call where nothing else is allowed.
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from measuring import Report, arguments  # first: one thread

CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "sphere of 4 tokens": ("particles.sphere", 1000, {"sizes": {"n": 4, "d": 3}, "vary": {"x0": "normal(0,1)"}}),
    "sphere of 8 tokens": ("particles.sphere", 100, {"sizes": {"n": 8, "d": 3}, "vary": {"x0": "normal(0,1)"}}),
    "sphere of 8 tokens, more": ("particles.sphere", 10000, {"sizes": {"n": 8, "d": 3}, "vary": {"x0": "normal(0,1)"}}),
    "sphere of 32 tokens": ("particles.sphere", 300, {"sizes": {"n": 32, "d": 8}, "vary": {"x0": "normal(0,1)"}}),
    "Hopfield, d = 16": ("hopfield.modern", 10000, {"sizes": {"d": 16, "N": 10}, "vary": {"beta": "uniform(1,3)"}}),
    "Hopfield, d = 64": ("hopfield.modern", 100, {"sizes": {"d": 64, "N": 10}, "vary": {"beta": "uniform(1,3)"}}),
    "Hopfield, d = 64, more": ("hopfield.modern", 10000, {"sizes": {"d": 64, "N": 10}, "vary": {"beta": "uniform(1,3)"}}),
    "graded, d = 32": ("hopfield.graded", 10000, {"sizes": {"d": 32}, "vary": {"g": "uniform(1,3)"}}),
    "deep linear, d = 4": ("classics.deep_linear", 1000, {"sizes": {"d": 4}, "vary": {"a0": "uniform(0.01,0.1)"}}),
    "committee, K = M = 2": ("classics.committee", 1000, {"vary": {"eta": "uniform(0.5,1.5)"}}),
    "joint softmax": ("joma.joint_softmax", 1000, {"vary": {"T": "uniform(0.5,1.5)"}}),
}
CALL = """
import importlib, json, sys, time
begun = time.process_time()
import odesim
from odesim.run import choose
from odesim.run import looped_lanes as loops
model, count, words, alone = json.loads(sys.argv[1])
api = importlib.import_module("odesim.api.ensemble")
made, inner = [], api.make_engine
if alone:
    choose.AT_ONCE, choose.SOON, choose.COMPILED_LINE, choose.FEW = -1, -1, 1e9, 10**12
def note(*asked):
    made.append(inner(*asked))
    return made[-1]
api.make_engine = note
times = [begun]
for _ in range(3):
    run = odesim.ensemble(model, members=count, max_events=0, **words)
    times.append(time.process_time())
steps = float(run["steps"].mean())
engine = made[-1]
engine = getattr(engine, "explicit", engine)
spent = [b - a for a, b in zip(times, times[1:])]
print(json.dumps({"first": spent[0], "again": min(spent[1:]), "engine": type(engine).__name__, "steps": steps}))
"""
NAMES = {"LaneEngine": "written out", "LoopLaneEngine": "loops", "SingleEngine": "one by one"}
COLUMNS = (
    ("system", "name", ""), ("states", "states", ""), ("members", "members", ""), ("engine", "engine", ""),
    ("first call, s", "first", ".1f"), ("again, s", "again", ".3f"), ("one by one, s", "alone", ".3f"),
    ("one by one / again", "ratio", ".1f"),
)  # fmt: skip


def called(case: tuple[str, int, dict[str, Any]], alone: bool) -> dict[str, Any]:
    """What a process with an empty cache prints."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ODESIM_CACHE_DIR": folder}
        words = [sys.executable, "-c", CALL, json.dumps([*case, alone])]
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    """Measures the cases that are named, all by default."""
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    import odesim

    report, rows = Report("first_calls"), []
    for name, (model, count, words) in CASES.items():
        if asked.cases and name not in asked.cases:
            continue
        own = [called((model, count, words), False) for _ in range(asked.rounds)]
        alone = min(called((model, count, words), True)["again"] for _ in range(asked.rounds))
        again = min(run["again"] for run in own)
        states = sum(
            v.size for v in odesim.integrate(model, sizes=words.get("sizes"), save=2, span=(0, 1e-3), backend="numpy").final.values()
        )
        row = {
            "name": name,
            "states": states,
            "members": count,
            "engine": NAMES[own[0]["engine"]],
            "first": min(run["first"] for run in own),
        }
        rows.append(row | {"again": again, "alone": alone, "ratio": alone / again})
        print(rows[-1], flush=True)
    report.add({"title": f"Ensembles of middling systems, the least of {asked.rounds}", "columns": COLUMNS, "rows": rows})
    report.write(asked.json, ("odesim", "numpy", "numba", "scipy"))


if __name__ == "__main__":
    main()
