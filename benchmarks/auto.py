"""The method that `auto` chooses for each model, and some stiff cases, beside the work of every method.

PYTHONPATH=. python benchmarks/auto.py            prints the table: right-hand sides of each, -- where a method ends early; the last
column is what the choice costs in units of the cheapest explicit one (none of the models in the first part is stiff).
"""

from typing import Any

import odesim

METHODS = ("tsit5", "vern7", "dop853", "rodas5p")
STIFF: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("joma.nonlinear, mu to 5", "joma.nonlinear", {"params": {"mu": [0.5, 2.0, 3.5, 5.0]}, "span": (0.0, 10.0)}),
    ("joma.nonlinear, mu 4.8, 3, 2", "joma.nonlinear", {"params": {"mu": [4.8, 3.0, 2.0]}, "span": (0.0, 4.0)}),
    ("joma.nonlinear, mu 7, 6, 5", "joma.nonlinear", {"params": {"mu": [7.0, 6.0, 5.0]}}),
    ("joma.nonlinear, mu 4", "joma.nonlinear", {"params": {"mu": 4.0}, "sizes": {"M": 4}, "span": (0.0, 10.0)}),
    ("joma.nonlinear_softmax, long", "joma.nonlinear_softmax", {"span": (0.0, 1e5)}),
)


def row(label: str, model: str, rtol: float, **more: Any) -> str:
    """A line of the table: right-hand side calls of each method, their ratio for the choice, the rule of the choice."""
    kw: dict[str, Any] = {"rtol": rtol, "atol": 1e-3 * rtol, "max_steps": 200_000, **more}
    chosen = odesim.integrate(model, **kw)
    work = {m: odesim.integrate(model, method=m, **kw) for m in METHODS}
    calls = {m: run.stats["rhs_calls"] if run.ok else None for m, run in work.items()}
    best = min((n for m, n in calls.items() if n is not None and m != "rodas5p"), default=None)
    cells = "".join(f"{'--' if n is None else f'{n:.0f}':>9s}" for n in calls.values())
    ratio = f"{chosen.stats['rhs_calls'] / best:6.2f}" if best and chosen.method != "rodas5p" else "     -"
    return f"{label:30s} {rtol:7.0e}{cells} {ratio}  {chosen.attrs['auto']}"


def main() -> None:
    print(f"{'right-hand sides':38s}" + "".join(f"{m:>9s}" for m in METHODS) + "  ratio  choice")
    for rtol in (1e-6, 1e-10):
        for name in odesim.list_models():
            if odesim.load_model(name).discrete:
                continue
            print(row(name, name, rtol), flush=True)
        for label, name, more in STIFF:
            print(row(label, name, rtol, **more), flush=True)


if __name__ == "__main__":
    main()
