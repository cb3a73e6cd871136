"""What differs between a stored run and the same run computed again, by a plain loop over its numbers."""

from typing import Any

import numpy as np

from odesim.api.differences import Differences


def test_rows_that_differ() -> None:
    """Random arrays with NaN and infinities: which rows differ, where the first is, by how much, and whether by more than the bound."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        old, which = rng.choice([0.0, 1.0, np.nan, np.inf, -np.inf], (5, 3), p=[0.3, 0.4, 0.1, 0.1, 0.1]), rng.random(5) < 0.8
        new = np.where(rng.random((5, 3)) < 0.85, old, rng.choice([0.0, 1.25, np.nan, np.inf], (5, 3)))
        bound, found = rng.choice([0.0, 0.5, 10.0]), Differences()
        found.add({"a": (old, new, bound)}, which, lambda i: f"member {i}")
        rows, largest, beyond = [], 0.0, False
        for i in np.flatnonzero(which):
            pairs: Any = [(a, b) for a, b in zip(old[i], new[i], strict=True) if not (a == b or (np.isnan(a) and np.isnan(b)))]
            rows += [int(i)] * bool(pairs)
            for a, b in pairs:
                finite = np.isfinite(a) and np.isfinite(b)
                largest = max(largest, abs(a - b)) if finite else largest
                beyond = beyond or not (finite and abs(a - b) <= bound)
        assert (found.counted, found.different, found.largest, found.beyond) == (int(which.sum()), len(rows), largest, beyond)
        assert found.first == (f"a of member {rows[0]}" if rows else "")
