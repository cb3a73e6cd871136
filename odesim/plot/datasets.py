"""Datasets that a user cut, or opened, in the form that pictures read: ensembles with members and times, integrations as Solutions."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.errors import ParamError
from odesim.plot.members import MEMBER, TIME, names_in

if TYPE_CHECKING:
    import xarray

STATUS, T_END = "status", "t_end"


def as_members(run: "xarray.Dataset") -> "xarray.Dataset":
    """The ensemble with the axes member and time, also where one of them was chosen, or members lie on the axes of their grid.

    Raises ParamError if it has no status, no time or no state and observable any more.
    """
    lists = {key: [name for name in names_in(run, key) if name in run] for key in ("states", "observables")}
    names = [name for found in lists.values() for name in found]
    if not names:
        raise ParamError(f"this Dataset has none of its states and observables any more: {', '.join(names_in(run, 'states'))}, ...")
    for name in (STATUS, T_END, TIME):
        if name not in run.variables:
            raise ParamError(f"this Dataset has no {name!r} any more, which the picture of an ensemble needs")
    run = run.assign_attrs(lists)
    if MEMBER not in run.dims:
        grid = run[STATUS].dims
        if grid:  # unstacked
            run = run.stack({MEMBER: grid}, create_index=False).transpose(MEMBER, ...)
            status = np.where(
                np.isfinite(run[STATUS].values), run[STATUS].values, -1
            )  # a place without a member is as one that is not done
            run = run.assign({STATUS: (MEMBER, status.astype(np.int8))})
        else:
            run = run.expand_dims(MEMBER)
    if TIME not in run.dims:
        run = run.assign({name: run[name].expand_dims({TIME: [run[TIME].item()]}, axis=1) for name in names})
    return run


def as_solution(run: "xarray.Dataset") -> Any:
    """The integration as an object with what the picture of a Solution reads. Raises ParamError if a time was chosen."""
    if TIME not in run.dims:
        raise ParamError("this Dataset has one time: the picture of an integration is over several")
    lists = {key: [name for name in names_in(run, key) if name in run] for key in ("states", "observables")}
    dims = {str(name): tuple(str(dim) for dim in v.dims if dim != TIME) for name, v in run.data_vars.items()}
    states, observables = ({name: run[name].transpose(TIME, ...).values for name in lists[key]} for key in lists)
    events = {name: found for name, found in run.attrs.get("events", {}).items() if isinstance(found, list)}
    return SimpleNamespace(
        t=run[TIME].values,
        y=states,
        observables=observables,
        events=events,
        dims=dims,
        attrs=run.attrs,
        model=run.attrs["model"],
        status=run.attrs["status"],
    )
