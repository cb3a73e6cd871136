"""Results of an ensemble as an xarray Dataset."""

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.versions import versions
from odesim.engines.problem import dimensions
from odesim.ensembles.accessor import register
from odesim.ensembles.design import Design, part_kinds
from odesim.ensembles.members import Members
from odesim.ensembles.request import METHOD_NAMES, RESERVED_NAMES, Chunk, EnsembleRequest, meanings
from odesim.stepper.codes import STATUSES
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray


def dataset(request: EnsembleRequest, members: Members, chunk: Chunk) -> "xarray.Dataset":
    """The members as an xarray Dataset, with each member's own values."""
    import xarray as xr

    dims, source, system, outputs = dimensions(request.system), members.source, request.system, request.outputs
    own = source.labels(0, source.count) if isinstance(source, Design) else source.rows(0, source.count)
    data: dict[str, Any] = {}
    for name, values in request.layout.split(chunk.y).items():
        data[name] = (("member", "time", *dims[name]), values.astype(request.dtype, copy=False))
    axes, types = outputs.axes(dims, request.layout.names), outputs.types(request.dtype)
    more = {name: (("member", *axes[name]), values.astype(types[name][0], copy=False)) for name, values in outputs.arrays(chunk).items()}
    ledger = {name: ("member", getattr(chunk, name)) for name in ("status", "t_end", "steps", "rejected", "method")}
    data |= {name: more[name] for name in outputs.observed.names} | ledger | more  # the order of a stored run
    coords: dict[str, Any] = {"member": np.arange(len(chunk.status)), "time": request.times}
    kinds = part_kinds(source.to_plain()) if isinstance(source, Design) else dict.fromkeys(own, "table")
    for name, values in own.items():
        label = label_of(system, name)
        coords[label] = (("member", *axis_names(system, name, label, values.ndim - 1)), values, {"design": kinds[name]})
    # netCDF has no null and no empty list
    about = {"model": system.name} | {name: v for name, v in request.options.numbers().items() if v is not None and v != []}
    about |= {"auto": request.auto} if request.auto else {}
    said = {"status_names": [str(s) for s in STATUSES], "status_meanings": meanings(system, request.options)}
    said["method_names"] = list(METHOD_NAMES)
    about |= {"sensitivities": list(system.sensitivities)} if system.sensitivities else {}
    lists = {"states": request.layout.names, "observables": outputs.observed.names, "ends": outputs.ends.names}
    about |= {name: list(names) for name, names in lists.items() if names} | ({"time_unit": system.time} if system.time else {})
    attrs = {**about, **said, "versions": str(versions())}
    register()
    return xr.Dataset(data, coords=coords, attrs=attrs)


def axis_names(system: System, name: str, label: str, rank: int) -> tuple[str, ...]:
    """Names of the axes of a member's own parameter or initial value: the System's index of that extent, if there is exactly one."""
    shapes = {**system.shapes, **{p.name: p.shape for p in system.params}}
    names = []
    for k in range(rank):
        found = [i.name for i, extent in system.axes.items() if extent == shapes[name][k]]
        names.append(found[0] if found and found[0] not in names else f"{label}_{k}")
    return tuple(names)


def label_of(system: System, name: str) -> str:
    """The name in the Dataset for the initial values of a state, distinct from states and status arrays."""
    taken = {*map(str, system.states), *RESERVED_NAMES}
    if name not in taken:
        return name
    taken |= {p.name for p in system.params}
    return next(label for label in (f"{name}_start{'_' * n}" for n in count()) if label not in taken)
