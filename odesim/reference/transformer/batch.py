"""Batches of a transformer and their check.

A batch holds tokens (R, B, T), targets, and some of:
positions (R, B, P) of the outputs in the loss where at is "given"; a negative one is left out;
padding (R, B, T): True at tokens that are not attended;
log_weight (R, B, T): added to the logits of a key, ln n of a key that stands for n identical ones (they must be alike in every
layer, so without positions; with a causal mask they must come before all other tokens);
weight (R, B): how often a sample counts.
targets are classes (R, B) where at is "last", else (R, B, T) or (R, B, P), a negative class is left out of the mean; of
squared_error they are numbers, with one more axis (C,).
"""

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.reference.protocols import Batch
from odesim.reference.transformer.architecture import Architecture


def check_batch(model: Architecture, batch: Batch) -> tuple[int, int, int]:
    """The shape (R, B, T) of a batch's tokens. Raises ParamError if an entry is missing or has a wrong shape or values."""
    required = ("tokens", "positions") if model.at == "given" else ("tokens",)
    for name in required:
        if name not in batch:
            raise ParamError(f"a batch needs {name!r}; this one has {', '.join(batch) or 'nothing'}")
    tokens = batch["tokens"]
    if tokens.ndim != 3 or not tokens.size:
        raise ParamError(f"tokens have the axes (seed, sample, position), none of them empty, not the shape {tokens.shape}")
    R, B, T = tokens.shape
    if model.positions and model.positions < T:
        raise ParamError(f"a sequence of {counted(T, 'token')} is longer than the {counted(model.positions, 'learned position')}")
    _within("tokens", tokens, model.vocabulary, low=0)
    for name, shape in (("padding", (R, B, T)), ("log_weight", (R, B, T)), ("weight", (R, B))):
        if name in batch and batch[name].shape != shape:
            raise ParamError(f"{name} of this batch has the shape {shape}, not {batch[name].shape}")
    if model.at == "given":
        if batch["positions"].shape[:2] != (R, B) or batch["positions"].ndim != 3:
            raise ParamError(f"positions of this batch have the shape ({R}, {B}, P), not {batch['positions'].shape}")
        _within("positions", batch["positions"], T)
    if "targets" in batch:
        rows = {"last": (), "all": (T,), "given": batch["positions"].shape[2:] if model.at == "given" else ()}[model.at]
        shape = (R, B, *rows, *(() if model.loss == "cross_entropy" else (model.classes,)))
        if batch["targets"].shape != shape:
            raise ParamError(f"targets of this batch have the shape {shape}, not {batch['targets'].shape}")
        if model.loss == "cross_entropy":
            _within("targets", batch["targets"], model.classes)
    return R, B, T


def _within(what: str, values: Array, end: int, low: int | None = None) -> None:
    if values.size and (values.max() >= end or (low is not None and values.min() < low)):
        raise ParamError(f"{what} lie in 0 to {end - 1}, not {values.max() if values.max() >= end else values.min()}")
