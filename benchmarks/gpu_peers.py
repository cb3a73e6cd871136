"""Other libraries' solvers of many members on a GPU, each as its documentation shows; a call begins and ends with arrays there.

diffrax as in peers.py, on jax's GPU. torchdiffeq takes all members as one system with one error norm, and so one step for all of them.
"""

from typing import Any

import numpy as np
from measuring import Solver
from peers import diffrax
from works import Work, right_side

PEERS = {"W2": ("diffrax Tsit5", "diffrax Dopri8", "torchdiffeq dopri5"), "W1": ("diffrax Tsit5", "torchdiffeq dopri5")}
PEERS |= {"W4j": ("diffrax Kvaerno5",)}


def solver(name: str, work: Work) -> Solver:
    """A peer for a work. Raises ModuleNotFoundError without its library."""
    library, method = name.split()
    return diffrax(work, method) if library == "diffrax" else torchdiffeq(work, method)


def torchdiffeq(work: Work, method: str) -> Solver:
    """torchdiffeq's method over arrays (D, N); the end alone."""
    import torch
    from torchdiffeq import odeint

    device = "cuda" if torch.cuda.is_available() else "cpu"
    start, params = (torch.as_tensor(np.ascontiguousarray(a.T), device=device) for a in (work.start, work.params))
    times = torch.tensor([0.0, work.end], dtype=torch.float64, device=device)
    right = right_side(work.system, torch.exp, torch.stack)

    def run() -> Any:
        with torch.no_grad():
            found = odeint(lambda t, y: right(t, y, params), start, times, rtol=work.tolerance, atol=work.absolute, method=method)
        if device == "cuda":
            torch.cuda.synchronize()
        return found

    def read(found: Any) -> tuple[np.ndarray, int]:
        values = found[-1].T.cpu().numpy()[:, None, :]
        return values, int(np.sum(~np.isfinite(values).all(axis=(1, 2))))

    return Solver(f"torchdiffeq {method}", len(work.start), run, read)
