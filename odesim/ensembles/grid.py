"""The members of a grid on axes of their own."""

from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.errors import ParamError, counted

if TYPE_CHECKING:
    import xarray

MEMBER = "member"


def unstack(run: "xarray.Dataset") -> "xarray.Dataset":
    """The Dataset with an axis for each number of its grid in the place of `member`, each in increasing order.

    Of zipped numbers the first is the axis. Members may have any order, and be left out: there is NaN. Raises ParamError if two members
    have the same numbers, or what differs is no grid.
    """
    if MEMBER not in run.dims:
        raise ParamError("this Dataset has no members: unstack is for ensembles")
    found = {str(name): v for name, v in run.coords.items() if v.dims[:1] == (MEMBER,) and name != MEMBER}
    zipped = [name for name, v in found.items() if v.attrs.get("design") == "zip"]
    axes = [name for name, v in found.items() if v.ndim == 1 and name not in zipped[1:]]
    points = {name: len(np.unique(found[name].values)) for name in axes}
    count, cells = run.sizes[MEMBER], int(np.prod([float(n) for n in points.values()])) if axes else 0
    random = [name for name in found if found[name].attrs.get("design") in ("random", "table") or (found[name].ndim > 1)]
    if not axes or random:
        what = f"{random[0]} is {found[random[0]].attrs.get('design') or 'an array'}" if random else "nothing differs"
        raise ParamError(f"the {counted(count, 'member')} form no grid: {what}; unstack is for numbers of grid and zipped")
    if (len(axes) == 1 and points[axes[0]] < count) or cells < count:
        raise ParamError(f"{counted(count, 'member')} have only {counted(cells, 'place')} on the grid of {', '.join(axes)}: some are equal")
    index: Any = {MEMBER: axes}
    flat = run.drop_vars(MEMBER, errors="ignore").set_index(index)
    if len(axes) == 1:
        return flat.rename({MEMBER: axes[0]}).sortby(axes[0])
    dims = {name: [*axes, *(d for d in v.dims if d != MEMBER)] for name, v in run.variables.items() if MEMBER in v.dims}
    unstacked = flat.unstack(MEMBER)
    return unstacked.assign({name: unstacked[name].transpose(*dims[name]) for name in unstacked.data_vars if name in dims})
