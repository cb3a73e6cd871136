"""What a kernel's codes mean: statuses of members."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.bind import Numbers
from odesim.ensembles.result import Chunk, Request
from odesim.solve.explicit.report import runs_away
from odesim.solve.problem import Status

TOO_SMALL = 4
CODES = {1: Status.OK, 3: Status.MAX_STEPS, TOO_SMALL: Status.STEP_TOO_SMALL, 5: Status.NON_FINITE}


def judge(
    request: Request, numbers: Numbers, chunk: Chunk, codes: Array, last: Callable[[int], Array], params: Mapping[str, Any]
) -> None:
    """Puts statuses into the chunk from codes (N,); a step that became too small may be a blow-up. last(i): where member i stopped (n,)."""
    for code, status in CODES.items():
        chunk.status[codes == code] = Request.number(status)
    for i in np.flatnonzero(codes == TOO_SMALL):
        bound = request.compiled.bind(numbers.sizes, {**numbers.params, **member(params, int(i))})
        if runs_away(bound, request.t0, float(chunk.t_end[i]), last(int(i)).copy(), request.rtol, request.atol):
            chunk.status[i] = Request.number(Status.BLOW_UP)


def member(arrays: Mapping[str, Any], i: int) -> dict[str, Any]:
    """What is member i's own: a number, or an array."""
    return {name: values[i] if values.ndim > 1 else values[i].item() for name, values in arrays.items()}
