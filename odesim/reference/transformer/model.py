"""A decoder-only transformer with its loss and hand-written gradients; for batches see batch.py."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.networks.architecture import Architecture, draw_params
from odesim.lab.networks.layers import (
    LOSSES,
    embed,
    embed_back,
    key_bias,
    layer_norm,
    layer_norm_back,
    linear,
    linear_back,
    shares,
    sum_rows,
)
from odesim.lab.networks.transformer import ForwardPass, block, block_back, check_batch, transformer_observables
from odesim.lab.training.protocols import Batch, Observable, Params


@dataclass(frozen=True)
class Transformer(Architecture):
    """A transformer as a Model of protocols.py. watch: the batch for observables that need data; extra: further observables."""

    watch: Batch | None = field(default=None, compare=False)
    extra: tuple[Observable, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return "transformer"

    @property
    def observables(self) -> tuple[Observable, ...]:
        return (*transformer_observables(self, self.forward, self.watch), *self.extra)

    def initial(self, rngs: Sequence[Generator], dtype: str = "float64") -> Params:
        """Initial parameters {name: (R, ...)}, of seed r from rngs[r] alone; a matrix is (R, inputs, outputs)."""
        return draw_params(self.starts(), rngs, dtype)

    def forward(self, params: Params, batch: Batch) -> ForwardPass:
        """The ForwardPass of a batch, with outputs at the positions that `at` selects."""
        E = params["embedding"]
        R, B, T = check_batch(self, batch)  # before it goes to a GPU, where reading values waits for all pending work
        batch = on_same_device(E, batch)
        x = embed(batch["tokens"], E)  # (R, B * T, d)
        if self.positions:
            by_sample = x.reshape(R, B, T, -1)
            by_sample += params["position"][:, None, :T]
        bias = key_bias(T, x, causal=self.causal, padding=batch.get("padding"), log_weight=batch.get("log_weight"))
        streams, tapes = [x], []
        for i in range(self.layers):
            x, tape = block(x, params_of_layer(params, f"layer{i}."), self, B=B, bias=bias)  # (R, B * T, d)
            streams.append(x)
            tapes.append(tape)
        read = self._gather(x, batch)  # (R, B * P, d)
        normed = None
        if self.norm == "pre":
            read, normed = layer_norm(read, params["norm_gain"], params["norm_shift"])
        head = E.swapaxes(1, 2) if self.tied else params["head"]  # (R, d, C)
        outputs = linear(read, head, params.get("head_bias")).reshape(R, B, -1, self.classes)  # (R, B, P, C)
        return ForwardPass(outputs, tuple(streams), tuple(tapes), normed, read, (R, B, T), batch)

    def loss_of(self, params: Params, batch: Batch) -> Array:
        """The loss (R,) of a batch, without gradients."""
        return self._compare(self.forward(params, batch))[0]

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}, in the order of the parameters."""
        run = self.forward(params, batch)
        loss, dy = self._compare(run)
        g: Params = {}
        E = params["embedding"]
        R, B, T = run.shape
        dy = dy.reshape(R, -1, self.classes)  # (R, B * P, C)
        head = E.swapaxes(1, 2) if self.tied else params["head"]
        dread, dhead = linear_back(dy, run.read, head)  # (R, B * P, d), (R, d, C)
        if "head_bias" in params:
            g["head_bias"] = sum_rows(dy)
        if run.normed is not None:
            dread, g["norm_gain"], g["norm_shift"] = layer_norm_back(dread, run.normed, params["norm_gain"])
        dx = self._scatter(dread, run.batch, (R, B, T))  # (R, B * T, d)
        for i in reversed(range(self.layers)):
            dx, block_gradients = block_back(dx, params_of_layer(params, f"layer{i}."), self, run.tapes[i])
            g |= {f"layer{i}.{name}": value for name, value in block_gradients.items()}
        if self.positions:
            g["position"] = array_namespace(dx).zeros_like(params["position"])
            g["position"][:, :T] = dx.reshape(R, B, T, -1).sum(axis=1)
        g["embedding"] = embed_back(dx, run.batch["tokens"], self.vocabulary)
        if self.tied:
            g["embedding"] += dhead.swapaxes(1, 2)
        else:
            g["head"] = dhead
        return loss, {name: g[name] for name in params}

    def _gather(self, x: Array, batch: Batch) -> Array:
        """Rows (R, B * P, d) of x (R, B * T, d) that the head reads."""
        R, B, T = batch["tokens"].shape
        if self.at == "all":
            return x
        xp, x = array_namespace(x), x.reshape(R, B, T, -1)
        if self.at == "last":
            return xp.ascontiguousarray(x[:, :, -1])
        where = xp.maximum(batch["positions"], 0)[..., None]  # (R, B, P, 1)
        return xp.take_along_axis(x, where, axis=2).reshape(R, -1, x.shape[-1])

    def _scatter(self, dread: Array, batch: Batch, shape: tuple[int, int, int]) -> Array:
        """The gradient (R, B * T, d) of all rows from dread (R, B * P, d); positions that are read twice get the sum."""
        if self.at == "all":
            return dread
        (R, B, T), xp = shape, array_namespace(dread)
        dx = xp.zeros((R, B, T, dread.shape[-1]), dread.dtype)
        dread = dread.reshape(R, B, -1, dread.shape[-1])  # (R, B, P, d)
        if self.at == "last":
            dx[:, :, -1] = dread[:, :, 0]
        else:
            indicators = xp.arange(T)[:, None] == xp.maximum(batch["positions"], 0)[:, :, None]  # (R, B, T, P)
            xp.matmul(indicators.astype(dread.dtype), dread, out=dx)
        return dx.reshape(R, B * T, -1)

    def _compare(self, run: ForwardPass) -> tuple[Array, Array]:
        """The loss (R,) of a forward pass and its gradient by the outputs (R, B, P, C); overwrites the outputs."""
        y, batch, targets = run.outputs, run.batch, run.batch["targets"]
        xp = array_namespace(y)
        if self.at == "last":
            targets = targets[:, :, None]  # (R, B, 1), of numbers (R, B, 1, C)
        counted = targets >= 0 if self.loss == "cross_entropy" else xp.ones(y.shape[:3], bool)  # (R, B, P)
        if self.at == "given":
            counted = counted & (batch["positions"] >= 0)
        return LOSSES[self.loss](y, targets, shares(counted, batch.get("weight"), y.dtype.name))


def params_of_layer(params: Params, prefix: str) -> Params:
    """{name without prefix: array} of the parameters whose names start with prefix."""
    return {name.removeprefix(prefix): value for name, value in params.items() if name.startswith(prefix)}
