"""What a kernel of members is told in one call: addresses of what it reads and writes, and numbers, in the columns AT of lane_plan.py.

It is the same for written-out lanes, lanes with loops and threads of a GPU, whose arrays lie on the device.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.ir.noise import MEMBER
from odesim.run.conditions import Parts, parts_of
from odesim.run.event_functions import Flow
from odesim.run.lane_dense import start_sums
from odesim.run.lane_plan import AT, REALS, KernelPlan
from odesim.stepper.codes import stored
from odesim.stepper.control import longest_step
from odesim.stepper.problem import fixed_steps, opening_step, usable
from odesim.stepper.table import new_table

Columns = dict[Any, Any]
"""{column, or its number: an array or a number}."""


class Inputs:
    """What a written-out kernel reads in one call, the parameters by the numbers of their columns.

    parts, flow: of members that run in parts, and that stop at events; None for others. origin (1, n): as of odesim.run.lanes.LaneEngine.
    """

    def __init__(
        self,
        request: EnsembleRequest,
        numbers: Numbers,
        plan: KernelPlan,
        params: Mapping[str, Array],
        initial: Mapping[str, Array],
        count: int,
        origin: Array | None = None,
    ) -> None:
        states, each = starts(request, numbers, initial, count), bool(initial) or plan.parts
        self.parts = parts_of(request, numbers, params, count) if plan.parts else None
        self.flow = lane_flow(request, self.parts, params, count) if self.parts is not None and plan.rounds else None
        if self.parts is not None:
            params = {**params, **self.parts.modes, **(self.flow.sides if self.flow is not None else {})}
            states = np.array(np.broadcast_to(states, (count, states.shape[1])), order="C")
        sums = start_sums(plan, states if origin is None else origin, numbers.params, params)
        self.columns: Columns = {**read_by_all(request, states, each), "KEPT": request.outputs.max_events}
        self.columns |= {"SUMS": sums, "SUMS_STEP": sums.shape[1] if len(sums) > 1 else 0}
        if plan.watch is not None:
            self.columns["FACTS"] = np.ascontiguousarray(np.array(plan.watch.facts, np.int64).T)
        if plan.noise is not None:
            seed, halvings = request.options.seed, request.options.halvings
            self.columns["NOISE"] = np.array([seed & 0xFFFFFFFF, seed >> 32, halvings, *params[MEMBER]], np.float64)
        for name, column in param_columns(plan).items():
            values = np.ascontiguousarray(params[name] if name in params else numbers.params[name], np.float64)
            self.columns |= {column: values, column + 1: values.size // max(count, 1) if name in params else 0}


def lane_flow(request: EnsembleRequest, parts: Parts, params: Mapping[str, Array], count: int) -> Flow:
    """The members of one call of lanes; its slopes are those of a kernel."""
    sides = {w: np.zeros((count, int(np.prod(parts.conditions.shape(e))))) for e in parts.conditions.held.watched for w in e.parameters}
    return Flow(parts, request.layout, request.dtype, sides, params)


def param_columns(plan: KernelPlan) -> dict[str, int]:
    """{parameter: the number of its column}; the next one says how far members are apart in it."""
    return {name: AT["PARAMS"] + 2 * k for k, name in enumerate(plan.formulas.values)}


def read_by_all(request: EnsembleRequest, states: Array, each: bool) -> Columns:
    """What every kernel reads, of members that start from these states. each: whether every member has its own."""
    arrays = {"Y0": states, "SAVE": request.times, "REALS": reals(request).view(np.float64), "ATOL": tolerances(request)}
    most = request.options.max_steps
    return {**arrays, "Y0_STEP": states.shape[1] * each, "SAVES": len(request.times), "MOST": most, "PILOT": request.look or most}


def written_by_all(chunk: Chunk, codes: Array, last: Array) -> Columns:
    """What every kernel of a processor writes."""
    counts = {"STATUS": codes, "T_END": chunk.t_end, "STEPS": chunk.steps, "REJECTED": chunk.rejected}
    return {"OUT": chunk.y, "LAST": last, **counts}


def call_table(columns: Mapping[Any, Any], table: Array | None = None) -> Array:
    """A table with these arrays and numbers in its columns, and what another table has elsewhere, or 0."""
    numbers = {AT.get(name, name): value for name, value in columns.items()}
    table = np.zeros(max(len(AT), 1 + max(numbers)), np.int64) if table is None else table.copy()
    for column, value in numbers.items():
        table[column] = value if isinstance(value, int) else address_of(value)
    return table


def address_of(array: Any) -> int:
    """Where the numbers of an array lie, on the device for one of cupy."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def starts(request: EnsembleRequest, numbers: Numbers, initial: Mapping[str, Array], count: int) -> Array:
    """(count, n): the states from which members start, in the dtype of the request; (1, n) if all start from the same."""
    layout = request.layout
    (first, *others), n = layout.names, layout.size
    if not others and first in initial and request.dtype == "float64":
        return np.ascontiguousarray(initial[first], np.float64).reshape(count, n)
    rows = np.empty((count if initial else 1, n), request.dtype)
    for name, view in layout.split(rows).items():
        view[...] = initial.get(name, numbers.initial[name])
    return rows.astype(np.float64, copy=False)


def put_statuses(chunk: Chunk, codes: Array) -> None:
    """Writes the statuses of members with these codes (N,)."""
    chunk.status[...] = stored(codes)


def reals(request: EnsembleRequest) -> Array:
    """The numbers of a call: the span, the tolerances; the longest step and the first one, or a fixed step, the last, and how many."""
    options = request.options
    rtol, atol = usable(options, request.layout, request.dtype)
    # of states with tolerances of their own NaN is read by nothing, and would be seen
    numbers = new_table(REALS, T0=request.t0, T1=request.t1, RTOL=rtol, ATOL=math.nan if options.by_state else atol)
    numbers["LONGEST"], numbers["H0"] = longest_step(options.max_step), opening_step(options.first_step, options.max_step)
    if options.step is not None:
        numbers["FIXED"] = options.step
        numbers["TOTAL"], numbers["REST"] = fixed_steps(request.t0, request.t1, options.step)
    return numbers


def tolerances(request: EnsembleRequest) -> Array:
    """The absolute tolerance of each component (n,), or that of all (1,)."""
    return np.array(usable(request.options, request.layout, request.dtype)[1], ndmin=1)
