"""A binary latent tree: samples, exact moments, and the posterior of the class given tokens.

The root is the class k of D; its A children are 1 with probability q[a, k]. Every other node has N children, each equal to its parent
with probability (1 + rho) / 2. The leaves, at depth L, decide which tokens are in a sequence. Node i of a depth has the parent i // N.
Source: tian2023joma, Section 5. Polarities are s = 2 y - 1; the height of a node is L less its depth.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array


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

    def covariance(self, depth: int, other: int) -> Array:
        """Cov(s, s') (n, n') of the nodes of two depths."""
        return self.second(depth, other) - np.outer(self.mean(depth), self.mean(other))

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
        posterior: Array = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return posterior


def co_occurrence(rho: float, rho0: float, depth: int, height: Array) -> Array:
    """P[y_l = 1 | y_m = 1] for leaves whose lowest common ancestor has a height of 1 to L - 1 (Theorem 5).

    rho0 is the mean polarity 2 P[y = 0] - 1 of a child of the root. The paper writes depth for the height. Its rho0 can be read as
    P[y = 0]: with that the formula does not hold. Nor does it where the root is the common ancestor.
    """
    return 1 - (1 - rho ** (2 * np.asarray(height, float))) / (2 * (1 - rho ** (depth - 1) * rho0))
