"""Known states in which a right-hand side overflows unseen (odesim.targets.observe)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array, extreme
from odesim.base.errors import SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.run.problem import parts_of
from odesim.symbolic.system import System
from odesim.targets.observe import Wrong, wrong_values
from odesim.transforms.lanes import LANES, TIME, lane_system

ROWS = 4096
"""States that are looked at together."""
REMEDY = "take larger units, or write it otherwise"
_LANES: Memo[System | None] = Memo(32)


def first_overflow(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], per_member: Mapping[str, Array], dtype: str
) -> tuple[int, str] | None:
    """The first of R states in which the right-hand side overflows unseen, and what is wrong there; None if it is right in all.

    per_member {name: (R, *shape)}: states, and parameters that differ, with the times as `t` (R,); shared: other parameters.
    """
    first_rows = [
        (first + int(np.argmax(rows)), state, wrong) for first, state, rows, wrong in overflows(system, sizes, shared, per_member, dtype)
    ]
    if not first_rows:
        return None
    row, state, wrong = min(first_rows, key=lambda each: each[0])
    at = np.unravel_index(int(np.argmax(wrong.where)), wrong.where.shape)
    here = {**shared, **{name: values[row] for name, values in per_member.items() if name != "t"}}
    sizes_of = {n: float(np.max(np.abs(value), initial=0.0)) for n, value in here.items()}
    name = max(sizes_of, key=lambda n: sizes_of[n])
    if not extreme((sizes_of[name],), dtype):  # it is too small
        name = next((n for n, value in here.items() if extreme((value,), dtype)), name)
    what = f"{name} = {sizes_of[name]:g} overflows in the right-hand side of {state}"
    return row, f"{what}: at t = {per_member['t'][row]:.9g} it is {wrong.values[at]:g} in {dtype}, right {wrong.right[at]:g}"


def overflows(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], per_member: Mapping[str, Array], dtype: str
) -> Iterator[tuple[int, str, Array, Wrong]]:
    """(first, state, which rows (k,) from there are wrong, and how the first of these is), part by part of R."""
    names, count = {str(name) for name in system.states}, len(per_member["t"])
    differing = tuple(name for name in per_member if name not in names and name != "t")

    def in_lanes() -> System | None:
        try:
            return lane_system(system, differing)
        except SpecError:
            return None

    wide = _LANES((IdentityKey(system), differing), in_lanes)
    rates = parts_of(wide or system, "numpy", dtype, False).compiled.arrays
    # layers, maps, and whole numbers of a member's own have no lanes: one after another
    for first in range(0, count, ROWS if wide else 1):
        rows = {name: values[first : first + (ROWS if wide else 1)] for name, values in per_member.items()}
        k = len(rows["t"])
        if wide:
            rows = {TIME if name == "t" else name: np.moveaxis(values, 0, -1) for name, values in rows.items()}
        else:
            rows = {name: values[0] for name, values in rows.items()}
        for name, wrong in wrong_values(rates, {**sizes, LANES: k}, {**shared, **rows}, dtype).items():
            by_row = Wrong(*(np.moveaxis(x, -1, 0) if wide else x[None] for x in wrong))
            bad = np.asarray(by_row.where.reshape(k, -1).any(axis=1))
            yield first, name.removeprefix("d_"), bad, Wrong(*(x[np.argmax(bad)] for x in by_row))
