"""A decoder-only transformer with its loss and hand-written gradients: its options, batches, the block, observables, the network."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError, counted, no_such
from odesim.lab.networks import layers
from odesim.lab.networks.layers import ACTIVATIONS, NormTape, cross_entropy, layer_norm, layer_norm_back, linear, linear_back, sum_rows
from odesim.lab.networks.measures import entropy, stable_rank
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.task import Batch, Observable, Params


def torch_linear(shape: tuple[int, ...], fan_in: int) -> InitialLaw:
    """The default law of torch for weights and bias of Linear."""
    # torch draws weights by kaiming_uniform with a = sqrt 5, whose bound sqrt(6 / ((1 + 5) fan_in)) is this one. Networks that are started
    # by other laws (Glorot, N(0, 0.02)) learn at other times: the published runs of tian2023joma are torch's defaults.
    return InitialLaw(shape, "uniform", 1.0 / math.sqrt(fan_in))


CHOICES = {"norm": ("pre", "post", "none"), "activation": tuple(ACTIVATIONS), "at": ("last", "all", "given"), "start": ("torch", "normal")}
BIASES = ("attention", "projection", "mlp", "head")
LEAST = {"vocabulary": 1, "width": 1, "layers": 0, "heads": 1, "mlp": 0, "positions": 0, "outputs": 1}
GROUPS = {
    **dict.fromkeys(("embedding", "position"), "embedding"),
    **dict.fromkeys(("query", "key", "value", "projection"), "attention"),
    **dict.fromkeys(("up", "down"), "mlp"),
    "head": "head",
}  # of parameters, but for gains and shifts, which are of the group norm
MANY_TOKENS = 1000  # vocabulary for which all pairs of embeddings cost more than a gradient step


@dataclass(frozen=True)
class Transformer(Network):
    """A transformer as a Model. Raises ParamError if options are invalid or do not fit together.

    outputs: number of outputs at a position, None for the vocabulary. mlp: nodes of the MLP, 0 for attention alone. positions: longest
    length with learned positions, 0 for none. norm: "pre" adds a layer norm before the head. at: the positions in the loss. start: torch's
    defaults, or N(0, std^2) for every matrix.
    watch: the batch for observables that need data; extra: further observables.
    """

    vocabulary: int
    width: int
    layers: int
    mlp: int = 0
    heads: int = 1
    outputs: int | None = None
    positions: int = 0
    norm: str = "pre"
    activation: str = "gelu"
    causal: bool = True
    projection: bool = True
    biases: tuple[str, ...] = BIASES
    at: str = "last"
    start: str = "torch"
    std: float = 0.02
    watch: Batch | None = field(default=None, compare=False)
    extra: tuple[Observable, ...] = field(default=(), compare=False)

    name = "transformer"

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ParamError(no_such(name, str(getattr(self, name)), choices))
        for place in self.biases:
            if place not in BIASES:
                raise ParamError(no_such("place of a bias", place, BIASES))
        for name, least in LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise ParamError(f"{name} is at least {least}, not {value}")
        if self.width % self.heads:
            raise ParamError(f"heads must divide the width: {self.heads} heads do not divide width {self.width}")
        if not self.std > 0:
            raise ParamError(f"std must be above 0, not {self.std}")

    @property
    def classes(self) -> int:
        """Number of outputs C at a position."""
        return self.vocabulary if self.outputs is None else self.outputs

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: group}: embedding, attention, mlp, norm or head."""
        return {name: GROUPS.get(name.split(".")[-1].removesuffix("_bias"), "norm") for name in self.laws}

    @property
    def laws(self) -> dict[str, InitialLaw]:
        """{parameter: InitialLaw}, in the order in which a seed draws them; a matrix is (inputs, outputs)."""
        d, normal = self.width, self.start == "normal"

        def linear_map(name: str, place: str, inner: int, outer: int) -> dict[str, InitialLaw]:
            weights = InitialLaw((inner, outer), "normal", self.std) if normal else torch_linear((inner, outer), inner)
            bias = InitialLaw((outer,), "constant", 0.0) if normal else torch_linear((outer,), inner)
            return {name: weights} | ({f"{name}_bias": bias} if place in self.biases else {})

        def norm(name: str, there: bool) -> dict[str, InitialLaw]:
            return {f"{name}_{part}": InitialLaw((d,), "constant", value) for part, value in (("gain", 1.0), ("shift", 0.0)) if there}

        table = self.std if normal else 1.0  # torch's Embedding is N(0, 1), wider than its Linear
        laws = {"embedding": InitialLaw((self.vocabulary, d), "normal", table)}
        if self.positions:
            laws["position"] = InitialLaw((self.positions, d), "normal", table)
        layer: dict[str, InitialLaw] = {}
        for name in ("query", "key", "value"):
            layer |= linear_map(name, "attention", d, d)
        layer |= (linear_map("projection", "projection", d, d) if self.projection else {}) | norm("norm1", self.norm != "none")
        if self.mlp:
            layer |= linear_map("up", "mlp", d, self.mlp) | linear_map("down", "mlp", self.mlp, d) | norm("norm2", self.norm != "none")
        laws |= {f"layer{i}.{name}": start for i in range(self.layers) for name, start in layer.items()}
        return laws | norm("norm", self.norm == "pre") | linear_map("head", "head", d, self.classes)

    def memory(self, *, seeds: int, batch: int, length: int, read: int = 1) -> Mapping[str, int]:
        """{what takes memory: approximate number of numbers} for sequences of `length` tokens, with outputs at `read` positions."""
        width, layers, mlp = self.width, self.layers, self.mlp
        matrices = layers * (4 * width * width + 2 * width * mlp)
        tables = width * (self.vocabulary + self.classes)
        # a block stores rows, queries, keys, values, attended rows, two norms, MLP nodes before and after activation
        pass_ = layers * (length * (10 * width + 3 * mlp) + 2 * self.heads * length * length) + read * 3 * self.classes
        return {
            "the parameters, their gradients and the optimizer": 5 * seeds * (matrices + tables),
            "what a step computes": seeds * batch * pass_,
            "the cosines of all pairs of embeddings": 2 * seeds * self.vocabulary**2,
        }

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Those that need data only if there is a batch to watch."""
        matrices = [name for name, start in self.laws.items() if len(start.shape) == 2]
        costly, watch = self.vocabulary > MANY_TOKENS, self.watch

        def ranks(params: Params) -> Array:
            xp = array_namespace(params["embedding"])
            return xp.stack([stable_rank(params[name]) for name in matrices], axis=1)

        result = [
            Observable("embedding_cosine", lambda p: embedding_cosines(p)[0], (), "mean |cosine| of two tokens' embeddings", costly=costly),
            Observable("embedding_cosine_max", lambda p: embedding_cosines(p)[1], (), "largest |cosine| of two embeddings", costly=costly),
            Observable("stable_rank", ranks, ("matrix",), f"|W|_F^2 / |W|_2^2 of {', '.join(matrices)}", costly=True),
        ]
        if self.layers:
            doc, dims = "|W| of queries, keys and values", ("layer", "weights")
            each = f"{doc}, columns of each head"
            result += [
                Observable("attention_norm", lambda p: attention_norms(p, self, 1)[..., 0], dims, doc, costly=True),
                Observable("attention_norm_heads", lambda p: attention_norms(p, self, self.heads), (*dims, "head"), each, costly=True),
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

    def forward(self, params: Params, batch: Batch) -> "ForwardPass":
        """The ForwardPass of a batch, with outputs at the positions that `at` selects."""
        E = params["embedding"]
        R, B, T = check_batch(self, batch)  # before it goes to a GPU, where reading values waits for all pending work
        batch = on_same_device(E, batch)
        x = layers.embed(batch["tokens"], E)  # (R, B * T, d)
        if self.positions:
            by_sample = x.reshape(R, B, T, -1)
            by_sample += params["position"][:, None, :T]
        bias = layers.key_bias(T, x, causal=self.causal, log_weight=batch.get("log_weight"))
        tapes = []
        for i in range(self.layers):
            x, tape = block(x, params_of_layer(params, f"layer{i}."), self, B=B, bias=bias)  # (R, B * T, d)
            tapes.append(tape)
        read, normed = self._gather(x, batch), None  # (R, B * P, d)
        if self.norm == "pre":
            read, normed = layer_norm(read, params["norm_gain"], params["norm_shift"])
        outputs = linear(read, params["head"], params.get("head_bias")).reshape(R, B, -1, self.classes)  # (R, B, P, C)
        return ForwardPass(outputs, tuple(tapes), normed, read, (R, B, T), batch)

    def loss_of(self, params: Params, batch: Batch) -> Array:
        """The loss (R,) of a batch, without gradients."""
        return self._compare(self.forward(params, batch))[0]

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}, in the order of the parameters."""
        run = self.forward(params, batch)
        (R, B, T), g = run.shape, Params()
        loss, dy = self._compare(run)
        dy = dy.reshape(R, -1, self.classes)  # (R, B * P, C)
        dread, g["head"] = linear_back(dy, run.read, params["head"])  # (R, B * P, d), (R, d, C)
        if "head_bias" in params:
            g["head_bias"] = sum_rows(dy)
        if run.normed is not None:
            dread, g["norm_gain"], g["norm_shift"] = layer_norm_back(dread, run.normed, params["norm_gain"])
        dx = self._scatter(dread, run.batch, (R, B, T))  # (R, B * T, d)
        for i in reversed(range(self.layers)):
            dx, of_block = block_back(dx, params_of_layer(params, f"layer{i}."), self, run.tapes[i])
            g |= {f"layer{i}.{name}": value for name, value in of_block.items()}
        if self.positions:
            g["position"] = array_namespace(dx).zeros_like(params["position"])
            g["position"][:, :T] = dx.reshape(R, B, T, -1).sum(axis=1)
        g["embedding"] = layers.embed_back(dx, run.batch["tokens"], self.vocabulary)
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

    def _compare(self, run: "ForwardPass") -> tuple[Array, Array]:
        """The loss (R,) of a forward pass and its gradient by the outputs (R, B, P, C); overwrites the outputs."""
        y, batch, targets = run.outputs, run.batch, run.batch["targets"]
        if self.at == "last":
            targets = targets[:, :, None]  # (R, B, 1)
        counted = targets >= 0  # (R, B, P)
        if self.at == "given":
            counted = counted & (batch["positions"] >= 0)
        return cross_entropy(y, targets, layers.shares(counted, batch.get("weight"), y.dtype.name))


def like(params: Params, value: Array) -> Array:
    """value in the library and dtype of a transformer's parameters."""
    E = params["embedding"]
    return array_namespace(E).asarray(value.astype(str(E.dtype)))


def params_of_layer(params: Params, prefix: str) -> Params:
    """{name without prefix: array} of the parameters whose names start with prefix."""
    return {name.removeprefix(prefix): value for name, value in params.items() if name.startswith(prefix)}


# Batches of a transformer and their check.
#
# A batch holds tokens (R, B, T), targets, and some of:
# positions (R, B, P) of the outputs in the loss where at is "given"; a negative one is left out;
# log_weight (R, B, T): added to the logits of a key, -inf of one that is not attended, ln n of one that stands for n identical ones (they
# must be alike in every layer, so without positions; with a causal mask they must come before all other tokens);
# weight (R, B): how often a sample counts.
# targets are classes (R, B) where at is "last", else (R, B, T) or (R, B, P); a negative class is left out of the mean.


def check_batch(model: Transformer, batch: Batch) -> tuple[int, int, int]:
    """The shape (R, B, T) of a batch's tokens. Raises ParamError if an entry is missing or has a wrong shape or values."""
    for name in ("tokens", *["positions"] * (model.at == "given")):
        if name not in batch:
            raise ParamError(f"a batch needs {name!r}; this one has {', '.join(batch) or 'nothing'}")
    tokens = batch["tokens"]
    if tokens.ndim != 3 or not tokens.size:
        raise ParamError(f"tokens have the axes (seed, sample, position), none of them empty, not the shape {tokens.shape}")
    R, B, T = tokens.shape
    if model.positions and model.positions < T:
        raise ParamError(f"a sequence of {counted(T, 'token')} is longer than the {counted(model.positions, 'learned position')}")
    _within("tokens", tokens, model.vocabulary, low=0)
    shapes: dict[str, tuple[int, ...]] = {"log_weight": (R, B, T), "weight": (R, B)}
    read: tuple[int, ...] = {"last": (), "all": (T,)}.get(model.at, ())
    if model.at == "given":
        if batch["positions"].shape[:2] != (R, B) or batch["positions"].ndim != 3:
            raise ParamError(f"positions of this batch have the shape ({R}, {B}, P), not {batch['positions'].shape}")
        _within("positions", batch["positions"], T)
        read = batch["positions"].shape[2:]
    for name, shape in {**shapes, "targets": (R, B, *read)}.items():
        if name in batch and batch[name].shape != shape:
            raise ParamError(f"{name} of this batch {'have' if name == 'targets' else 'has'} the shape {shape}, not {batch[name].shape}")
    if "targets" in batch:
        _within("targets", batch["targets"], model.classes)
    return R, B, T


def _within(what: str, values: Array, end: int, low: int | None = None) -> None:
    if values.size and (values.max() >= end or (low is not None and values.min() < low)):
        raise ParamError(f"{what} lie in 0 to {end - 1}, not {values.max() if values.max() >= end else values.min()}")


# A transformer block: attention and an MLP, each with residual connection and layer norm.


@dataclass(frozen=True)
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
    normed: dict[str, NormTape]
    expanded: Array | None = None
    hidden: Array | None = None
    slope: Array | None = None


def block(x: Array, p: Params, design: Transformer, *, B: int, bias: Array | None) -> tuple[Array, Tape]:
    """The output (R, N, d) of a block with parameters p for x (R, N, d), and its tape. bias: see layers.key_bias."""
    normed: dict[str, NormTape] = {}

    def norm(x: Array, place: str, when: str) -> Array:
        """x (R, N, d), normalised where the design has this norm, "pre" or "post"."""
        if design.norm == when:
            x, normed[place] = layer_norm(x, p[f"{place}_gain"], p[f"{place}_shift"])
        return x

    def rows(x: Array, name: str) -> Array:
        return linear(x, p[name], p.get(f"{name}_bias"))

    u = norm(x, "norm1", "pre")
    q, k, v = (rows(u, name) for name in ("query", "key", "value"))  # (R, N, d) each
    mixed, a = layers.attention(q, k, v, B=B, H=design.heads, bias=bias)  # (R, N, d), (R, B, H, T, T)
    y = rows(mixed, "projection") if design.projection else mixed  # (R, N, d)
    y = norm(x + y, "norm1", "post")
    if not design.mlp:
        return y, Tape(u, q, k, v, a, mixed, normed)
    w = norm(y, "norm2", "pre")
    hidden, slope = ACTIVATIONS[design.activation](rows(w, "up"))  # (R, N, mlp) each
    z = rows(hidden, "down")  # (R, N, d)
    z += y
    return norm(z, "norm2", "post"), Tape(u, q, k, v, a, mixed, normed, w, hidden, slope)


def block_back(dz: Array, p: Params, design: Transformer, tape: Tape) -> tuple[Array, Params]:
    """The gradient dx (R, N, d) and those of parameters {name: (R, ...)}, from dz (R, N, d)."""
    g = Params()

    def norm(dy: Array, place: str, when: str) -> Array:
        if design.norm == when:
            dy, g[f"{place}_gain"], g[f"{place}_shift"] = layer_norm_back(dy, tape.normed[place], p[f"{place}_gain"])
        return dy

    def rows(dy: Array, x: Array, name: str) -> Array:
        dx, g[name] = linear_back(dy, x, p[name])
        if f"{name}_bias" in p:
            g[f"{name}_bias"] = sum_rows(dy)
        return dx

    dy = dz  # (R, N, d)
    if design.mlp:
        assert tape.expanded is not None and tape.hidden is not None and tape.slope is not None
        dz = norm(dz, "norm2", "post")
        dh = rows(dz, tape.hidden, "down")  # (R, N, mlp)
        dh *= tape.slope
        dy = norm(rows(dh, tape.expanded, "up"), "norm2", "pre")  # (R, N, d)
        dy += dz
    dy = norm(dy, "norm1", "post")
    dm = rows(dy, tape.mixed, "projection") if design.projection else dy  # (R, N, d)
    dq, dk, dv = layers.attention_back(dm, tape.q, tape.k, tape.v, tape.a)  # (R, N, d) each
    dx = rows(dq, tape.attended, "query")
    dx += rows(dk, tape.attended, "key")
    dx += rows(dv, tape.attended, "value")
    dx = norm(dx, "norm1", "pre")
    dx += dy
    return dx, g


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass: outputs (R, B, P, C).

    tapes: one for each block, with attention weights a (R, B, H, T, T) and activations hidden (R, B * T, mlp). normed: of the layer norm
    before the head. read: the rows that the head reads. shape: (R, B, T). batch: on the device of the parameters.
    """

    outputs: Array
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


def attention_entropies(run: ForwardPass) -> Array:
    """The entropy (R, L, H) of the attention weights of each layer and head, averaged over samples and queries.

    A key that represents n identical ones (log_weight ln n) counts as n keys; samples are weighted by `weight`.
    """
    batch, xp = run.batch, array_namespace(run.outputs)
    queries = xp.ones(run.shape, run.outputs.dtype)
    if "weight" in batch:
        queries *= batch["weight"][:, :, None]
    queries /= queries.sum(axis=(1, 2), keepdims=True)
    means = []
    for a in run.attention:
        h = entropy(a)  # (R, B, H, T)
        if "log_weight" in batch:
            keys = xp.maximum(batch["log_weight"], -1e30).astype(a.dtype)  # -inf * 0 is no number
            h = h + (a @ keys[:, :, None, :, None])[..., 0]
        means.append((h * queries[:, :, None]).sum(axis=(1, 3)))
    return xp.stack(means, axis=1)


def attention_norms(params: Params, design: Transformer, parts: int) -> Array:
    """Norms (R, L, 3, parts) of so many equal groups of columns of the matrices of queries, keys and values of each layer; no biases."""
    xp, rows = array_namespace(params["embedding"]), []
    for i in range(design.layers):
        for name in ("query", "key", "value"):
            W = params[f"layer{i}.{name}"]  # (R, d, d)
            rows.append(xp.sqrt((W * W).sum(axis=1).reshape(len(W), parts, -1).sum(axis=2)))
    return xp.stack(rows, axis=1).reshape(len(rows[0]), design.layers, 3, parts)


def embedding_cosines(params: Params) -> tuple[Array, Array]:
    """(mean, largest) absolute cosine (R,) of pairs of different rows of the embedding (R, V, d); 0 for rows of zeros."""
    E = params["embedding"]
    xp, V = array_namespace(E), E.shape[1]
    lengths = xp.sqrt((E * E).sum(axis=2, keepdims=True))  # (R, V, 1)
    unit = E / xp.where(lengths > 0.0, lengths, 1.0)
    cosine = xp.abs(unit @ unit.swapaxes(1, 2))  # (R, V, V)
    cosine *= 1.0 - xp.eye(V, dtype=E.dtype)
    flat = cosine.reshape(len(E), -1)
    return flat.sum(axis=1) / max(V * (V - 1), 1), flat.max(axis=1)
