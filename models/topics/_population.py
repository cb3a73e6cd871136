"""The masked loss in numpy, by hand: documents of tau of T topics, v words each, where attention sees a word, its topic and the rest."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Population:
    """Documents and masking. p1, p2: law of a word of a present and of an absent topic as shown; m0: of the mask."""

    T: int
    v: int
    tau: int
    p_c: float
    p_m: float = 0.15
    p_r: float = 0.1

    def but(self, **changes: Any) -> "Population":
        """The same with changes."""
        return replace(self, **changes)

    @property
    def n(self) -> int:
        return self.T * self.v

    @property
    def kappa(self) -> float:
        return 1 - (1 - self.p_c) * self.p_m

    @property
    def m0(self) -> float:
        return self.p_m * (1 - self.p_c - self.p_r)

    @property
    def p2(self) -> float:
        return self.p_m * self.p_r / self.n

    @property
    def p1(self) -> float:
        return self.kappa / (self.tau * self.v) + self.p2

    @property
    def sigma2(self) -> float:
        return (self.T - self.tau) / (self.tau * self.T * self.v * (self.T - 1))

    @cached_property
    def topic_mean(self) -> np.ndarray:
        """B / v (n + 1, n + 1): the mean over a word's topic; 0 for the mask."""
        return np.pad(np.kron(np.eye(self.T), np.full((self.v, self.v), 1 / self.v)), ((1, 0), (1, 0)))

    @cached_property
    def Pi_t(self) -> np.ndarray:
        """Projector between topics, (n + 1, n + 1)."""
        return self.topic_mean - np.pad(np.full((self.n, self.n), 1 / self.n), ((1, 0), (1, 0)))

    def stage1(self, t: float, squares: float | None = None) -> tuple[np.ndarray, float]:
        """Values (n + 1, n + 1) and loss at time t of the first stage, from 0; squares: E |theta|^2 of other proportions of topics."""
        sigma2 = self.sigma2 if squares is None else (squares - 1 / self.T) / (self.v * (self.T - 1))
        word = np.r_[0.0, np.ones(self.n)]
        mu = np.r_[self.m0, np.full(self.n, (1 - self.m0) / self.n)]
        slow, fast = np.exp(-2 * self.kappa**2 * sigma2 * t), np.exp(-2 * mu @ mu * t)
        W = (1 - slow) / self.kappa * self.Pi_t + (1 - fast) / (self.n * mu @ mu) * np.outer(word, mu)
        least = 1 - 1 / self.n - (self.T - 1) * sigma2  # 1 - E |P|^2
        return W, least + (self.T - 1) * sigma2 * slow**2 + fast**2 / self.n

    def state(self, s: float, alpha: float, beta: float) -> dict[str, np.ndarray]:
        """Weights of topics.full with values W_s and this attention: s = 0 are blocks, s = 1 is the diagonal."""
        words = np.diag(np.r_[0.0, np.ones(self.n)])
        shown = np.outer(np.r_[0.0, np.ones(self.n)], np.ones(self.n + 1))
        logits = np.log(alpha) * self.v * self.topic_mean + (np.log(beta) - np.log(alpha)) * words
        W_V = (s * words + (1 - s) * self.topic_mean - self.p2 * shown) / self.kappa
        return {"W_V": W_V, "W_K": logits.T, "W_Q": np.eye(self.n + 1)}

    def loss(self, s: float, alpha: float, beta: float) -> float:
        """L of attention beta to the word itself, alpha to the rest of its topic, 1 elsewhere, with values W_s."""
        T, v, tau, p1, p2 = self.T, self.v, self.tau, self.p1, self.p2
        gam = (beta + (v - 1) * alpha) / v
        total = 0.0
        for own_law, present, z in (
            (p1, tau - 1, p1 * v * (gam + tau - 1) + p2 * v * (T - tau) + self.m0),
            (p2, tau, p2 * v * (gam + T - tau - 1) + p1 * v * tau + self.m0),
        ):
            masses = ((s * beta + (1 - s) * gam) * own_law, (s * alpha + (1 - s) * gam) * own_law, p1, p2)
            own, same, other, out = ((mass / z - p2) / self.kappa for mass in masses)
            square = own**2 + (v - 1) * same**2 + present * v * other**2 + (T - present - 1) * v * out**2 + 1
            if own_law == p1:
                total += (self.p_c + self.p_r / self.n) * (square - 2 * own)
                total += self.p_r / T * (1 - 1 / v) * (square - 2 * same) + self.p_r * (tau - 1) / T * (square - 2 * other)
            else:
                total += self.p_r * (1 - tau / T) * (square - 2 * other)
        return total + (1 - self.p_c - self.p_r) * (1 - 1 / (tau * v))

    def best_topic(self) -> float:
        """Attention to the whole topic at which the loss of blocks is least."""
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(lambda u: self.loss(0.0, np.exp(u), np.exp(u)), bounds=(-5, 6), method="bounded", options={"xatol": 1e-9})
        return float(np.exp(found.x))

    def best_words(self) -> tuple[float, float]:
        """alpha and beta at which the loss of diagonal values is least."""
        from scipy.optimize import minimize

        def loss(u: np.ndarray) -> float:
            return self.loss(1.0, float(np.exp(u[0])), float(np.exp(u[1])))

        options: Any = {"xatol": 1e-9, "fatol": 1e-15}
        found = minimize(loss, np.array([0.0, 3.0]), method="Nelder-Mead", options=options)
        return float(np.exp(found.x[0])), float(np.exp(found.x[1]))
