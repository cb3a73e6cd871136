"""A decoder-only transformer with its loss and hand-written gradients: batches, the block, observables, the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.architecture import Architecture, draw_params
from odesim.lab.networks.layers import (
    ACTIVATIONS,
    LOSSES,
    NormTape,
    attention,
    attention_back,
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
from odesim.lab.networks.measures import entropy, stable_rank
from odesim.lab.training.protocols import Batch, Observable, Params

# Batches of a transformer and their check.
#
# A batch holds tokens (R, B, T), targets, and some of:
# positions (R, B, P) of the outputs in the loss where at is "given"; a negative one is left out;
# padding (R, B, T): True at tokens that are not attended;
# log_weight (R, B, T): added to the logits of a key, ln n of a key that stands for n identical ones (they must be alike in every
# layer, so without positions; with a causal mask they must come before all other tokens);
# weight (R, B): how often a sample counts.
# targets are classes (R, B) where at is "last", else (R, B, T) or (R, B, P), a negative class is left out of the mean; of
# squared_error they are numbers, with one more axis (C,).


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


# A transformer block: attention and an MLP, each with residual connection and layer norm.

Weights = Mapping[str, Array]  # of one block: {name: (R, ...)}
Gradients = dict[str, Array]


@dataclass
class Tape:
    """Intermediate results of a block for its backward pass; rows are (R, N, width), N = B * T.

    attended, expanded: inputs of attention and MLP. a: attention weights (R, B, H, T, T). hidden: MLP nodes after the activation.
    """

    attended: Array
    q: Array
    k: Array
    v: Array
    a: Array
    mixed: Array
    expanded: Array | None = None
    hidden: Array | None = None
    slope: Array | None = None
    normed: dict[str, NormTape] = field(default_factory=dict)


def _apply_norm(x: Array, p: Weights, place: str, saved: dict[str, NormTape]) -> Array:
    y, saved[place] = layer_norm(x, p[f"{place}_gain"], p[f"{place}_shift"])
    return y


def _apply_norm_back(dy: Array, p: Weights, place: str, saved: dict[str, NormTape], g: Gradients) -> Array:
    dx, g[f"{place}_gain"], g[f"{place}_shift"] = layer_norm_back(dy, saved[place], p[f"{place}_gain"])
    return dx


def _linear_back(dy: Array, x: Array, p: Weights, name: str, g: Gradients) -> Array:
    """The gradient dx; the gradients of weights and bias are added to g."""
    dx, g[name] = linear_back(dy, x, p[name])
    if f"{name}_bias" in p:
        g[f"{name}_bias"] = sum_rows(dy)
    return dx


def block(x: Array, p: Weights, design: Architecture, *, B: int, bias: Array | None) -> tuple[Array, Tape]:
    """The output (R, N, d) of a block for x (R, N, d), and its tape. bias: see attention.key_bias."""
    saved: dict[str, NormTape] = {}
    u = _apply_norm(x, p, "norm1", saved) if design.norm == "pre" else x  # (R, N, d)
    q, k, v = (linear(u, p[name], p.get(f"{name}_bias")) for name in ("query", "key", "value"))  # (R, N, d) each
    mixed, a = attention(q, k, v, B=B, H=design.heads, bias=bias)  # (R, N, d), (R, B, H, T, T)
    y = linear(mixed, p["projection"], p.get("projection_bias")) if design.projection else mixed  # (R, N, d)
    y = x + y if design.residual else y
    y = _apply_norm(y, p, "norm1", saved) if design.norm == "post" else y
    tape = Tape(attended=u, q=q, k=k, v=v, a=a, mixed=mixed, normed=saved)
    if not design.mlp:
        return y, tape
    u = _apply_norm(y, p, "norm2", saved) if design.norm == "pre" else y  # (R, N, d)
    hidden, slope = ACTIVATIONS[design.activation](linear(u, p["up"], p.get("up_bias")))  # (R, N, mlp) each
    z = linear(hidden, p["down"], p.get("down_bias"))  # (R, N, d)
    if design.residual:
        z += y
    z = _apply_norm(z, p, "norm2", saved) if design.norm == "post" else z
    tape.expanded, tape.hidden, tape.slope = u, hidden, slope
    return z, tape


def block_back(dz: Array, p: Weights, design: Architecture, tape: Tape) -> tuple[Array, Gradients]:
    """The gradient dx (R, N, d) and those of parameters {name: (R, ...)}, from dz (R, N, d)."""
    g: Gradients = {}
    saved = tape.normed
    dy = dz  # (R, N, d)
    if design.mlp:
        assert tape.expanded is not None and tape.hidden is not None and tape.slope is not None
        dz = _apply_norm_back(dz, p, "norm2", saved, g) if design.norm == "post" else dz
        dh = _linear_back(dz, tape.hidden, p, "down", g)  # (R, N, mlp)
        dh *= tape.slope
        dy = _linear_back(dh, tape.expanded, p, "up", g)  # (R, N, d)
        dy = _apply_norm_back(dy, p, "norm2", saved, g) if design.norm == "pre" else dy
        if design.residual:
            dy += dz
    dy = _apply_norm_back(dy, p, "norm1", saved, g) if design.norm == "post" else dy
    dm = _linear_back(dy, tape.mixed, p, "projection", g) if design.projection else dy  # (R, N, d)
    dq, dk, dv = attention_back(dm, tape.q, tape.k, tape.v, tape.a)  # (R, N, d) each
    dx = _linear_back(dq, tape.attended, p, "query", g)
    dx += _linear_back(dk, tape.attended, p, "key", g)
    dx += _linear_back(dv, tape.attended, p, "value", g)
    dx = _apply_norm_back(dx, p, "norm1", saved, g) if design.norm == "pre" else dx
    if design.residual:
        dx += dy
    return dx, g


# The record of a forward pass of the transformer: outputs, and the intermediate results for the backward pass.


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass: outputs (R, B, P, C), rows (R, N, d) before block 0, 1, ... and after the last, with N = B * T.

    tapes: one for each block, with attention weights a (R, B, H, T, T) and activations hidden (R, N, mlp). normed: of the layer norm
    before the head. read: the rows that the head reads. shape: (R, B, T). batch: on the device of the parameters.
    """

    outputs: Array
    streams: tuple[Array, ...]
    tapes: tuple[Tape, ...]
    normed: NormTape | None
    read: Array
    shape: tuple[int, int, int]
    batch: Batch

    @property
    def attention(self) -> tuple[Array, ...]:
        """Attention weights (R, B, H, T, T) of each layer, query axis before key axis."""
        return tuple(tape.a for tape in self.tapes)

    @property
    def hidden(self) -> tuple[Array, ...]:
        """MLP activations (R, B, T, mlp) of each layer; empty if mlp is 0."""
        return tuple(tape.hidden.reshape(*self.shape, -1) for tape in self.tapes if tape.hidden is not None)


# Observables of a transformer: entropy of attention, cosines of embeddings, stable ranks of matrices.

MANY_TOKENS = 1000  # vocabulary for which all pairs of embeddings cost more than a gradient step


def attention_entropies(run: ForwardPass) -> Array:
    """The entropy (R, L, H) of the attention weights of each layer and head, averaged over samples and queries without padding.

    A key that represents n identical ones (log_weight ln n) counts as n keys; samples are weighted by `weight`.
    """
    batch = run.batch
    xp = array_namespace(run.outputs)
    R, B, T = run.shape
    queries = xp.ones((R, B, T), run.outputs.dtype)
    if "padding" in batch:
        queries *= ~batch["padding"]
    if "weight" in batch:
        queries *= batch["weight"][:, :, None]
    queries /= queries.sum(axis=(1, 2), keepdims=True)
    layers = []
    for a in run.attention:
        h = entropy(a)  # (R, B, H, T)
        if "log_weight" in batch:
            keys = xp.maximum(batch["log_weight"], -1e30).astype(a.dtype)  # -inf * 0 is no number
            h = h + (a @ keys[:, :, None, :, None])[..., 0]
        layers.append((h * queries[:, :, None]).sum(axis=(1, 3)))
    return xp.stack(layers, axis=1)


def embedding_cosines(params: Params) -> tuple[Array, Array]:
    """(mean, largest) absolute cosine (R,) of pairs of different rows of the embedding (R, V, d); 0 for rows of zeros."""
    E = params["embedding"]
    xp = array_namespace(E)
    V = E.shape[1]
    lengths = xp.sqrt((E * E).sum(axis=2, keepdims=True))  # (R, V, 1)
    unit = E / xp.where(lengths > 0.0, lengths, 1.0)
    cosine = xp.abs(unit @ unit.swapaxes(1, 2))  # (R, V, V)
    cosine *= 1.0 - xp.eye(V, dtype=E.dtype)
    flat = cosine.reshape(len(E), -1)
    return flat.sum(axis=1) / max(V * (V - 1), 1), flat.max(axis=1)


@dataclass(frozen=True)
class Transformer(Architecture):
    """A transformer as a Model. watch: the batch for observables that need data; extra: further observables."""

    watch: Batch | None = field(default=None, compare=False)
    extra: tuple[Observable, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return "transformer"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Those that need data only if there is a batch to watch."""
        matrices = [name for name, start in self.starts().items() if len(start.shape) == 2]
        costly, watch = self.vocabulary > MANY_TOKENS, self.watch

        def ranks(params: Params) -> Array:
            xp = array_namespace(params["embedding"])
            return xp.stack([stable_rank(params[name]) for name in matrices], axis=1)

        result = [
            Observable("embedding_cosine", lambda p: embedding_cosines(p)[0], (), "mean |cosine| of two tokens' embeddings", costly=costly),
            Observable("embedding_cosine_max", lambda p: embedding_cosines(p)[1], (), "largest |cosine| of two embeddings", costly=costly),
            Observable("stable_rank", ranks, ("matrix",), f"|W|_F^2 / |W|_2^2 of {', '.join(matrices)}", costly=True),
        ]
        if watch is not None and self.layers:
            doc, each = "entropy of the attention, mean over queries and heads", "entropy of each head's attention, mean over queries"

            def heads(params: Params) -> Array:
                return attention_entropies(self.forward(params, watch))

            result[:0] = [
                Observable("attention_entropy", lambda p: heads(p).mean(axis=2), ("layer",), doc),
                Observable("attention_entropy_heads", heads, ("layer", "head"), each, costly=True),
            ]
        return (*result, *self.extra)

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
