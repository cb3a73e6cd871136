"""Loss and gradients of a transformer on a GPU: odesim's hand-written passes on cupy against torch's eager autograd on the same card."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from card import free_all, wall_seconds
from train_transformer import torch_loss

from odesim.base.device import cupy_here
from odesim.lab.networks.transformer import Transformer

# vocabulary, width, layers, heads, MLP, batch, length
SHAPES = {
    "small": (1000, 128, 3, 4, 512, 64, 30),
    "middling": (4096, 512, 6, 8, 2048, 32, 128),
    "large": (16384, 1024, 8, 16, 4096, 16, 256),
}
FEW = {"small": (50, 16, 2, 2, 32, 4, 6)}
CALLS = 10  # a measured time is that of so many, one after another
COLUMNS = (
    ("size", "size", ""), ("parameters, 1e6", "parameters", ".1f"), ("tokens", "tokens", "d"), ("dtype", "dtype", ""),
    ("odesim, ms", "odesim", ".2f"), ("torch, ms", "torch", ".2f"), ("odesim / torch", "ratio", ".2f"),
    ("gradients apart", "apart", ".0e"),
)  # fmt: skip


def transformer_rows(few: bool, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each size and dtype. Without torch there is odesim's time alone. Raises SystemExit where gradients differ."""
    try:
        import torch
    except ImportError:
        torch = None
    cp = cupy_here()
    for size, shape in (FEW if few else SHAPES).items():
        vocabulary, width, layers, heads, mlp, batch, length = shape
        model = Transformer(vocabulary, width, layers, mlp, heads, positions=length, at="all")
        rng = np.random.default_rng(1)
        tokens, targets = (rng.integers(0, vocabulary, (1, batch, length)) for _ in range(2))
        for dtype in ("float32", "float64"):
            params = {name: cp.asarray(value) for name, value in model.initial([np.random.default_rng(0)], dtype).items()}
            given = {"tokens": tokens, "targets": targets}  # on the host, as a training has them: values on a device are waited for

            def ours(model: Any = model, params: Any = params, given: Any = given) -> Any:
                for _ in range(CALLS):
                    found = model.loss_and_gradients(params, given)
                cp.cuda.Device().synchronize()
                return found

            loss, gradients = ours()
            row = {"size": size, "parameters": sum(p.size for p in params.values()) / 1e6, "tokens": batch * length, "dtype": dtype}
            row["odesim"] = 1e3 * wall_seconds(ours, rounds) / CALLS
            if torch is not None:
                peer = torch_peer(torch, params, tokens[0], targets[0], shape)
                loss_peer, gradients_peer = peer()
                row["apart"] = apart(gradients, gradients_peer, params)
                if abs(float(loss[0]) - loss_peer) > 1e-4 * loss_peer or row["apart"] > 1e-3:
                    raise SystemExit(f"different results: losses {float(loss[0])} and {loss_peer}, gradients {row['apart']:.1e} apart")
                row["torch"] = 1e3 * wall_seconds(peer, rounds) / CALLS
                row["ratio"] = row["odesim"] / row["torch"]
            yield row
            free_all()


def torch_peer(torch: Any, params: Any, tokens: Any, targets: Any, shape: Any) -> Any:
    """A function that computes the same loss and gradients in torch, CALLS times."""
    matrices = is_matrix(params)
    theirs = {}
    for name, value in params.items():
        a = value[0].get()
        theirs[name] = torch.tensor(a.T.copy() if name in matrices else a, device="cuda", requires_grad=True)
    tokens, targets = (torch.tensor(a, device="cuda") for a in (tokens, targets))

    def run() -> tuple[float, dict[str, Any]]:
        for _ in range(CALLS):
            for p in theirs.values():
                p.grad = None
            loss = torch_loss(theirs, tokens, targets, shape)
            loss.backward()
        torch.cuda.synchronize()
        return loss.item(), {name: p.grad for name, p in theirs.items()}

    return run


def is_matrix(params: Any) -> set[str]:
    """Names of the matrices, which torch has transposed."""
    return {name for name, value in params.items() if value.ndim == 3 and name not in ("embedding", "position")}


def apart(ours: Any, theirs: Any, params: Any) -> float:
    """The largest difference of two gradients, in units of the largest entry."""
    matrices, largest = is_matrix(params), max(float(abs(a).max()) for a in ours.values())
    return max(
        float(np.abs(ours[name][0].get() - (t.cpu().numpy().T if name in matrices else t.cpu().numpy())).max()) / largest
        for name, t in theirs.items()
    )
