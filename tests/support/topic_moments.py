"""Moments of masked documents that are read again and again, over all masks: the values that training on them ends at."""

import numpy as np


def moments(words: np.ndarray, lengths: np.ndarray, n: int, p_m: float, p_c: float, p_r: float) -> tuple[np.ndarray, np.ndarray]:
    """E e_x A^T and E A A^T (n + 1, n + 1) for x a masked word of documents (D, longest) and A the mean of what is shown there.

    Of a word w that may be masked, kappa e_w + r is shown in the mean; of x itself, p_c e_x + q. Each place counts alike.
    """
    d, D, N = n + 1, len(words), lengths[:, None].astype(float)
    here = np.arange(words.shape[1]) < lengths[:, None]
    counts = np.bincount((np.arange(D)[:, None] * d + words)[here], minlength=D * d).reshape(D, d).astype(float)
    any_word, mask = np.r_[0, np.full(n, 1 / n)], np.eye(d)[0]
    kappa, q = 1 - (1 - p_c) * p_m, p_r * any_word + (1 - p_c - p_r) * mask
    r = p_m * q

    def second(c: np.ndarray, keep: float, rest: np.ndarray) -> np.ndarray:
        """sum_w c_w (keep e_w + rest)(keep e_w + rest)^T."""
        return np.asarray(keep**2 * np.diag(c) + keep * (np.outer(c, rest) + np.outer(rest, c)) + c.sum() * np.outer(rest, rest))

    weight, mean = 1 / (N * lengths.sum()), kappa * counts + N * r  # of a place over N; what a document shows, N times
    shares = counts / N
    all_places, one = (counts * weight).sum(axis=0), (shares * weight).sum(axis=0)
    change = (p_c - kappa) * shares + q - r  # of what is shown when the place itself is masked, in the mean over places
    cross = (counts * weight).T @ mean + (p_c - kappa) * np.diag(all_places) + np.outer(all_places, q - r)
    squares = (mean * weight).T @ mean + (mean * weight).T @ change + (change * weight).T @ mean + second(one, p_c - kappa, q - r)
    drawn = np.diag(((mean + change) * weight).sum(axis=0)) - second(all_places, kappa, r) + second(one, kappa, r) - second(one, p_c, q)
    return cross, squares + drawn


def end_of_training(words: np.ndarray, lengths: np.ndarray, n: int, p_m: float, p_c: float, p_r: float) -> np.ndarray:
    """W_V (n + 1, n + 1) of least loss under uniform attention."""
    cross, squares = moments(words, lengths, n, p_m, p_c, p_r)
    return np.asarray(np.linalg.solve(squares, cross.T).T)
