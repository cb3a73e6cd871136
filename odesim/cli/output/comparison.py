"""Output of `odesim compare` as JSON."""

import json
from dataclasses import asdict
from typing import Any

from odesim.comparison import Comparison
from odesim.store.write import to_plain


def json_object(comparison: Comparison) -> dict[str, Any]:
    """The object that --json prints: what is compared, the times, a row for each observable; NaN is null.

    `each` of a row is {metric: [value of each seed]}, empty for one seed. numbers: of a recipe.
    """
    times = {"first": comparison.t[0], "last": comparison.t[-1], "count": len(comparison.t)}
    fields = {**comparison.said, "notes": (*comparison.doubts, *comparison.notes), "seeds": comparison.seeds, "time": times}
    rows = [{**asdict(number), "agrees": number.agrees} for number in comparison.numbers]
    result = {**fields, "observables": comparison.table(), "worst": comparison.worst()["observable"]}
    return dict(to_plain({**result, "numbers": rows} if rows else result))


def json_text(comparison: Comparison) -> str:
    """json_object on one line of ASCII."""
    return json.dumps(json_object(comparison), allow_nan=False)
