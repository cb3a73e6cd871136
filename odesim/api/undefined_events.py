"""Events added to a run whose expression is a number at no saved time: they cannot happen, and the run says so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.memo import IdentityKey, Memo
from odesim.codegen.observe import Observer
from odesim.inputs.bind import Numbers
from odesim.symbolic.system import System

_MADE: Memo[Observer] = Memo(32)


def undefined_events(system: System, names: Sequence[str], t: Array, y: Mapping[str, Array], numbers: Numbers) -> Iterator[str]:
    """Names of the events, among `names`, that are NaN in every component at all saved times. t (T,), y {state: (T, *shape)}."""
    chosen = [event for event in system.events if event.name in names]
    if not chosen or not len(t):
        return
    exprs = {f"event_{k}": event.expr for k, event in enumerate(chosen)}
    key = IdentityKey(system), tuple(event.name for event in chosen)
    observer = _MADE(key, lambda: Observer(replace(system, observables=exprs, display={}, invariants=(), events=())))
    y = {name: values for name, values in on_host(y).items() if name in system.states}
    undefined = set(exprs)
    for rows in (np.unique([0, len(t) - 1]), np.arange(len(t))):  # most are a number at the start: no need to look at all times
        if undefined:
            values = observer(t[rows], {name: v[rows] for name, v in y.items()}, numbers.sizes, numbers.params, lambda t, now: {})
            undefined -= {name for name, seen in values.items() if not np.isnan(seen).all()}
    yield from (event.name for k, event in enumerate(chosen) if f"event_{k}" in undefined)
