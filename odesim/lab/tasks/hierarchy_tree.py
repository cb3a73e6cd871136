"""The task hierarchy_tree: a transformer classifies sequences of tokens from a binary latent tree.

Source: tian2023joma, Section 5. The leaves that are 1 are the tokens of a sequence, in no order. The root has one child for each class,
which is 1 for its class alone. The transformer has no positions: a place for every leaf, hidden where the leaf is 0, and a last one that
reads the class, which looks at all that are there. NCorr[s] is the correlation of a latent of height s + 1 with its best MLP node of
block s, the largest activation over the places of a sequence. In exact: loss_bayes, the loss on the test sequences of the true
probabilities of the classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import by_layer
from odesim.lab.networks.sequences import Sequences, network_of, sequence_task
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import ADAM
from odesim.lab.training.task import Batch, Observable, Params, Setting, Settings

# A binary latent tree: samples, exact moments, and the posterior of the class given tokens.
#
# The root is the class k of D; its A children are 1 with probability q[a, k]. Every other node has N children, each equal to its parent
# with probability (1 + rho) / 2. The leaves, at depth L, decide which tokens are in a sequence. Node i of a depth has the parent i // N.
# Source: tian2023joma, Section 5. Polarities are s = 2 y - 1; the height of a node is L less its depth.


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree with q (A, D), p (D,): probabilities of classes, num_children N, depth L, rho."""

    q: Array
    p: Array
    num_children: int
    depth: int
    rho: float

    def size(self, depth: int) -> int:
        """Number of nodes at a depth, 1 to L."""
        return len(self.q) * int(self.num_children) ** (depth - 1)

    @property
    def leaves(self) -> int:
        """Number of leaves M, which is that of tokens."""
        return self.size(self.depth)

    def root_child(self, depth: int) -> Array:
        """The index (n,) of the root's child above each node of a depth."""
        return np.arange(self.size(depth)) // self.num_children ** (depth - 1)

    def class_mean(self, depth: int) -> Array:
        """E[s | class] (D, n) at a depth."""
        return (self.rho ** (depth - 1) * (2 * self.q - 1)[self.root_child(depth)]).T

    def mean(self, depth: int) -> Array:
        """E[s] (n,) at a depth."""
        return self.p @ self.class_mean(depth)

    def second(self, depth: int, other: int) -> Array:
        """E[s s'] (n, n') of nodes of two depths: rho^(number of edges between them), unless the path passes the root."""
        polarity = 2 * self.q - 1
        a, b = self.root_child(depth), self.root_child(other)
        apart = self.rho ** (depth + other - 2) * ((polarity * self.p) @ polarity.T)[a[:, None], b]
        edges = depth + other - 2 * self.meeting_depth(depth, other)
        return np.where(a[:, None] == b, self.rho ** edges.astype(float), apart)

    def conditional(self) -> Array:
        """P[y_l = 1 | y_m = 1] (M, M) of the leaves, row l and column m; 0 where y_m is never 1."""
        e = self.mean(self.depth)
        both = (1 + e[:, None] + e + self.second(self.depth, self.depth)) / 4
        m = (1 + e) / 2
        return np.where(m > 0, both, 0) / np.where(m > 0, m, 1)

    def heights(self) -> Array:
        """The height (M, M) of the lowest common ancestor of two leaves: 0 on the diagonal, L for the root."""
        return self.depth - self.meeting_depth(self.depth, self.depth)

    def meeting_depth(self, depth: int, other: int) -> Array:
        """The depth (n, n') of the lowest common ancestor of nodes of two depths, 0 for the root."""
        i, j = np.arange(self.size(depth))[:, None], np.arange(self.size(other))
        N = self.num_children
        return sum((i // N ** (depth - d) == j // N ** (other - d) for d in range(1, min(depth, other) + 1)), np.zeros((1, 1), int))

    def sample(self, rng: Generator, count: int) -> tuple[Array, tuple[Array, ...]]:
        """Random classes (count,), and whether nodes are 1: (count, n) for each of the depths 1 to L."""
        classes = rng.choice(len(self.p), count, p=self.p)
        nodes = [rng.random((count, len(self.q))) < self.q.T[classes]]
        for depth in range(2, self.depth + 1):
            other = rng.random((count, self.size(depth))) < (1 - self.rho) / 2
            nodes.append(np.repeat(nodes[-1], self.num_children, axis=1) ^ other)
        return classes, tuple(nodes)

    def posterior(self, present: Array) -> Array:
        """log P[class | tokens] (B, D) for tokens present (B, M), computed from the leaves to the root."""
        same, other = (1 + self.rho) / 2, (1 - self.rho) / 2
        with np.errstate(divide="ignore"):  # impossible events have the logarithm -inf
            # (B, n, 2): log-likelihood of the leaves below a node, given the node
            up = np.log(np.stack([~present, present], axis=-1).astype(float))
            for depth in range(self.depth, 1, -1):
                messages = np.logaddexp(np.log(same) + up, np.log(other) + up[..., ::-1])
                up = messages.reshape(len(present), self.size(depth - 1), self.num_children, 2).sum(axis=2)
            zero, one = up[..., :1] + np.log(1 - self.q), up[..., 1:] + np.log(self.q)  # (B, A, D)
            joint = np.logaddexp(zero, one).sum(axis=1) + np.log(self.p)  # (B, D)
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


TEST_SEQUENCES, WATCHED_SEQUENCES = 256, 64  # number of test sequences, and of those whose attention is recorded
MAX_LEAVES = 2048


def draw_sequences(rng: Generator, count: int, *, tree: Tree, nodes: bool = False) -> Batch:
    """Random sequences of the tree: tokens and padding (count, M + 1), targets (count,).

    nodes: with depth1, depth2, ... (count, n), whether each node of this depth is 1.
    """
    classes, layers = tree.sample(rng, count)
    padding = np.pad(~layers[-1], [(0, 0), (0, 1)])
    batch = {"tokens": np.tile(np.arange(tree.leaves + 1), (count, 1)), "padding": padding, "targets": classes}
    return batch | ({f"depth{d}": layer for d, layer in enumerate(layers, 1)} if nodes else {})


def observables(model: Transformer, test: Batch, depth: int) -> tuple[Observable, ...]:
    """The observables NCorr (R, S) of latents of heights 1 to S, of which a tree of this depth has depth - 1, and loss_test (R,)."""
    latents = [test[f"depth{d}"] for d in range(depth - 1, 0, -1)]

    def ncorr(params: Params) -> Array:
        hidden = model.forward(params, test).hidden  # (R, B, T, mlp) each
        xp = array_namespace(hidden[0])
        visible = ~xp.asarray(test["padding"])[..., None]
        # relu activations are at least 0, so that hidden places do not change the maximum
        return by_layer(latents, [(h * visible).max(axis=2) for h in hidden], xp.ones(hidden[0].shape[:2], hidden[0].dtype))

    doc = "correlation of a latent with its best MLP node, mean over latents"
    test_loss = Observable("loss_test", lambda params: model.loss_of(params, test), (), "loss of the test sequences", costly=True)
    return (*[Observable("NCorr", ncorr, ("height",), doc, costly=True)] * bool(latents), test_loss)


SETTINGS = (
    Setting("num_classes", 5, "D, classes", low=1),
    Setting("num_children", 2, "N, children of a node below the root", low=1),
    Setting("depth", 4, "L, of the leaves; the root has 0", low=1, high=64),
    Setting("rho", 0.9, "correlation of a node with its parent", low=-1.0, high=1.0),
    Setting("batch", 64, "sequences of a batch", low=1),
    Setting("width", 32, "of the embeddings", low=1),
    Setting("layers", 2, "blocks", low=1),
    Setting("heads", 1, "heads, which divide the width", low=1),
    Setting("mlp", 64, "nodes of the MLP of a block", low=1),
    ADAM,
    Setting("lr", 1e-3, "learning rate", low=0.0),
    Setting("weight_decay", 0.0, "of the optimizer", low=0.0),
)


def sequences(values: Settings) -> Sequences:
    """A transformer that sees all places. Raises ParamError for more than MAX_LEAVES leaves."""
    D, N, L = (values[name] for name in ("num_classes", "num_children", "depth"))
    if (leaves := D * N ** (L - 1)) > MAX_LEAVES:
        raise ParamError(f"the tree has {leaves} leaves, num_classes * num_children^(depth - 1); at most {MAX_LEAVES} can be")
    tree = Tree(np.eye(D), np.full(D, 1 / D), N, L, values["rho"])

    def exact(test: Batch) -> Mapping[str, Array]:
        pairs = zip(test[f"depth{L}"], test["targets"], strict=True)
        of_class = [np.take_along_axis(tree.posterior(y), k[:, None], axis=1) for y, k in pairs]
        return {"loss_bayes": -np.stack(of_class).mean(axis=(1, 2))}

    return Sequences(
        network_of(values, leaves + 1, outputs=D, activation="relu", causal=False),
        partial(draw_sequences, tree=tree),
        length=leaves + 1,
        tests=TEST_SEQUENCES,
        watch=partial(observables, depth=L),
        draw_test=partial(draw_sequences, tree=tree, nodes=True),
        exact=exact,
        attended=WATCHED_SEQUENCES,
        other={"the tree": 6 * leaves**2},
    )


DOC = "the class at the root of a binary latent tree, from the tokens at its leaves (tian2023joma, Section 5)"
TASK = sequence_task("hierarchy_tree", DOC, SETTINGS, sequences, steps=1000)
