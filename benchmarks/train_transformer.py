"""Loss and gradients of a small transformer, odesim's hand-written passes on numpy against torch's eager autograd, on a CPU.

python benchmarks/train_transformer.py [--rounds 15] [--threads 1,2] [--dtypes float32,float64] [--json FILE]

3 layers, width 128, 4 heads, MLP 512 with exact GELU, layer norm before each half, biases everywhere, learned positions; batch 64 of
30 tokens out of 1000, cross-entropy of the next token at all positions. Both get the same parameters and tokens, and a run stops
unless loss and gradients agree. They take turns in one process; a ratio is the median of the rounds' ratios, odesim / torch: below 1
odesim is faster. torch is no dependency of odesim: install it beside numpy and scipy in an environment of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VOCABULARY, WIDTH, LAYERS, HEADS, MLP, BATCH, LENGTH = 1000, 128, 3, 4, 512, 64, 30
COLUMNS = (
    ("threads", "threads", "d"),
    ("dtype", "dtype", ""),
    ("odesim, ms", "odesim_ms", ".1f"),
    ("best", "odesim_best_ms", ".1f"),
    ("torch, ms", "torch_ms", ".1f"),
    ("best", "torch_best_ms", ".1f"),
    ("ratio", "ratio", ".2f"),
    ("gradients apart", "gradients_apart", ".0e"),
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read when the libraries are imported


SHAPE = (VOCABULARY, WIDTH, LAYERS, HEADS, MLP, BATCH, LENGTH)


def torch_loss(p: dict[str, Any], tokens: Any, targets: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    """The same network from torch's own fast functions; p: odesim's parameters of one seed, matrices as torch has them."""
    import torch

    F, (_, width, layers, heads, _, batch, length) = torch.nn.functional, shape
    x = F.embedding(tokens, p["embedding"]) + p["position"]
    for i in range(layers):
        w = {name.removeprefix(f"layer{i}."): value for name, value in p.items() if name.startswith(f"layer{i}.")}
        u = F.layer_norm(x, (width,), w["norm1_gain"], w["norm1_shift"])
        q, k, v = (
            F.linear(u, w[name], w[f"{name}_bias"]).view(batch, length, heads, -1).transpose(1, 2) for name in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + F.linear(mixed, w["projection"], w["projection_bias"])
        u = F.layer_norm(x, (width,), w["norm2_gain"], w["norm2_shift"])
        x = x + F.linear(F.gelu(F.linear(u, w["up"], w["up_bias"])), w["down"], w["down_bias"])
    x = F.layer_norm(x, (width,), p["norm_gain"], p["norm_shift"])
    return F.cross_entropy(F.linear(x, p["head"], p["head_bias"]).flatten(0, 1), targets.flatten())


def measure(threads: int, dtype: str, rounds: int) -> dict[str, Any]:
    """A row, measured in a process whose libraries use this number of threads."""
    import numpy as np
    import torch

    from odesim.lab.networks.transformer import Transformer

    torch.set_num_threads(threads)
    model = Transformer(VOCABULARY, WIDTH, LAYERS, MLP, HEADS, positions=LENGTH, at="all")
    params = model.initial([np.random.default_rng(0)], dtype)
    rng = np.random.default_rng(1)
    batch = {name: rng.integers(0, VOCABULARY, (1, BATCH, LENGTH)) for name in ("tokens", "targets")}
    matrices = {name for name, value in params.items() if value.ndim == 3 and name not in ("embedding", "position")}
    theirs = {name: torch.tensor(value[0].T.copy() if name in matrices else value[0], requires_grad=True) for name, value in params.items()}
    tokens, targets = (torch.tensor(batch[name][0]) for name in ("tokens", "targets"))

    def ours() -> tuple[float, dict[str, Any]]:
        loss, gradients = model.loss_and_gradients(params, batch)
        return float(loss[0]), {name: g[0] for name, g in gradients.items()}

    def peer() -> tuple[float, dict[str, Any]]:
        for p in theirs.values():
            p.grad = None
        loss = torch_loss(theirs, tokens, targets)
        loss.backward()
        return loss.item(), {name: p.grad for name, p in theirs.items()}

    (loss, g), (loss_peer, g_peer) = ours(), peer()
    largest = max(float(abs(a).max()) for a in g.values())
    apart = max(float(np.abs(g[n] - (t.numpy().T if n in matrices else t.numpy())).max()) / largest for n, t in g_peer.items())
    bound = 1e-10 if dtype == "float64" else 1e-4
    if not (abs(loss - loss_peer) <= bound * loss and apart <= bound):
        raise SystemExit(f"different results: losses {loss} and {loss_peer}, gradients {apart:.1e} of the largest apart")
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        ours()
        middle = time.perf_counter()
        peer()
        times.append((middle - begun, time.perf_counter() - middle))
    t = np.array(times) * 1e3
    return {
        "threads": threads,
        "dtype": dtype,
        "odesim_ms": float(np.median(t[:, 0])),
        "torch_ms": float(np.median(t[:, 1])),
        "odesim_best_ms": float(t[:, 0].min()),
        "torch_best_ms": float(t[:, 1].min()),
        "ratio": float(np.median(t[:, 0] / t[:, 1])),
        "gradients_apart": apart,
    }


def main() -> None:
    """Runs the benchmark: measures each row in its own process, prints, and writes JSON for --json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--row", nargs=2, metavar=("THREADS", "DTYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(int(options.row[0]), options.row[1], options.rounds)))
        return
    from measuring import Report  # not in a child, whose threads it would set

    report, rows = Report("train_transformer"), []
    for threads in options.threads.split(","):
        for dtype in options.dtypes.split(","):
            environment = {**os.environ, **dict.fromkeys(THREADS, threads), "PYTHONPATH": str(ROOT)}
            command = [sys.executable, __file__, "--row", threads, dtype, "--rounds", str(options.rounds)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout))
    found = {"transformer": max(row["ratio"] for row in rows)}
    report.add({"title": "Loss and gradients, median and best of the rounds", "columns": COLUMNS, "rows": rows}, **found)
    report.write(options.json, ("odesim", "numpy", "torch"))


if __name__ == "__main__":
    main()
