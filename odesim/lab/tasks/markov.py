"""The task markov: in-context learning of Markov chains by a transformer of attention alone.

Source: Edelman et al. 2024, "The Evolution of Statistical Induction Heads", arXiv 2402.11004. Each sequence is of a chain of its own, with
k states, whose rows of transition probabilities are uniform on the simplex. The transformer predicts every next state. It goes from
the uniform prediction to in-context unigrams, then to in-context bigrams, for which its first layer attends to the previous token.

samples=0: every iteration draws new sequences. samples=n: the n same ones make one batch, so that optimizer=sgd is gradient flow in steps.
In exact: strategy_losses, the loss of the three strategies on the test sequences. In infinite contexts they would be ln k, the mean
entropy of the stationary law (k = 2: .5638273; k = 3: .9788), and the mean entropy of a transition (.4808892; .8190).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks.sequences import Sequences, network_of, sequence_task
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import adam
from odesim.lab.training.task import Batch, Observable, Params, Setting, Settings

# Sequences of Markov chains whose rows of transition probabilities are drawn from Dirichlet(1, ..., 1), a chain for each sequence.

FIRSTS = ("stationary", "uniform")


def draw_chains(rng: Generator, count: int, k: int) -> Array:
    """Transition probabilities (count, k, k): every row is uniform on the simplex."""
    P = rng.standard_exponential((count, k, k))
    P /= P.sum(axis=2, keepdims=True)
    return P


def stationary(P: Array) -> Array:
    """The stationary probabilities (n, k) of chains P (n, k, k): pi (1 - P + ones) = ones."""
    n, k, _ = P.shape
    return np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((n, k, 1)))[..., 0]


def draw_sequences(rng: Generator, count: int, k: int, length: int, first: str) -> Array:
    """Sequences (count, length) of states, each of a chain of its own. first: the law of the first state, one of FIRSTS."""
    P = draw_chains(rng, count, k)
    start = stationary(P) if first == "stationary" else np.full((count, k), 1 / k)
    below, start_below = P.cumsum(axis=2)[..., :-1], start.cumsum(axis=1)[:, :-1]  # the last bound is 1
    u = rng.random((length, count))
    states, rows = np.empty((length, count), np.int64), np.arange(count)
    states[0] = (u[0][:, None] >= start_below).sum(axis=1)
    for t in range(1, length):
        states[t] = (u[t][:, None] >= below[rows, states[t - 1]]).sum(axis=1)
    return states.T.copy()


def draw_predictions(rng: Generator, count: int, *, k: int, length: int, first: str) -> Batch:
    """Sequences as tokens (count, length), and as targets (count, length) the states after them."""
    states = draw_sequences(rng, count, k, length + 1, first)
    return {"tokens": states[:, :-1], "targets": states[:, 1:]}


# Predictions of the next state of a Markov chain from the states so far by three strategies, and a model's distance from each.
#
# uniform: 1 / k. unigram: (n_j + 1) / (n + k), from how often each state j came. bigram: (n_ij + 1) / (n_i + k), from how often j came
# after the present state i. For rows from Dirichlet(1, ..., 1) and a uniform first state bigram is the exact posterior.

STRATEGIES = ("uniform", "unigram", "bigram")


def strategies(tokens: Array, k: int) -> Array:
    """Probabilities (3, ..., T, k) of the state after each of tokens (..., T), in the order of STRATEGIES."""
    seen = (tokens[..., None] == np.arange(k)).astype(float)  # (..., T, k)
    came = seen.cumsum(axis=-2)
    unigram = (came + 1) / (came.sum(axis=-1, keepdims=True) + k)
    after = np.zeros((*seen.shape, k))
    after[..., 1:, :, :] = seen[..., :-1, :, None] * seen[..., 1:, None, :]
    pairs = after.cumsum(axis=-3)  # (..., T, k, k)
    of_present = (seen[..., None] * pairs).sum(axis=-2)  # (..., T, k)
    bigram = (of_present + 1) / (of_present.sum(axis=-1, keepdims=True) + k)
    return np.stack([np.full(seen.shape, 1 / k), unigram, bigram])


def losses(predicted: Array, targets: Array) -> Array:
    """Mean -ln p[target] (..., R) over samples and positions, for predicted (..., R, B, T, k) and targets (R, B, T)."""
    p = (predicted * (targets[..., None] == np.arange(predicted.shape[-1]))).sum(axis=-1)  # (..., R, B, T)
    return -np.log(p).mean(axis=(-2, -1))


def divergences(predicted: Array, logits: Array) -> Array:
    """Kullback-Leibler divergences (R, S) of the model from predictions (S, R, B, T, k), means over samples and positions.

    logits (R, B, T, k): of the model.
    """
    xp = array_namespace(logits)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))  # (R, B, T, k)
    right = xp.asarray(predicted, dtype=logits.dtype)
    each = (right * (xp.log(right) - log_p)).sum(axis=-1)  # (S, R, B, T)
    return each.mean(axis=(-2, -1)).swapaxes(0, 1)


TEST_SEQUENCES, WATCHED_SEQUENCES = 256, 32  # of the test loss; of what is recorded at every iteration


def previous_attention(attention: Sequence[Array]) -> Array:
    """The mean attention (R, L, H) to the token before the query's, over all queries but the first, from weights (R, B, H, T, T)."""
    xp = array_namespace(attention[0])
    _, B, _, T, _ = attention[0].shape
    before = (xp.arange(T)[:, None] == xp.arange(T)[None] + 1).astype(attention[0].dtype)
    return xp.stack([(a * before).sum(axis=(1, 3, 4)) / (B * (T - 1)) for a in attention], axis=1)


def by_distance(attention: Sequence[Array]) -> Array:
    """Attention (R, L, H, T) from weights (R, B, H, T, T) to the token 0, ..., T - 1 places before, less that of even attention.

    The mean over B and over the queries that have such a token: query t gives each of its t + 1 tokens 1 / (t + 1) if it is even.
    """
    xp = array_namespace(attention[0])
    T = attention[0].shape[-1]
    even = 1 / (xp.arange(T) + 1)
    means = [a.mean(axis=1).reshape(a.shape[0], a.shape[2], T * T) for a in attention]  # the weight of t for t - o is at t (T + 1) - o
    rows = [xp.stack([(m[..., o * T :: T + 1] - even[o:]).mean(axis=-1) for o in range(T)], axis=-1) for m in means]
    return xp.stack(rows, axis=1).astype(attention[0].dtype)


def observables(model: Transformer, test: Batch) -> tuple[Observable, ...]:
    """The observables KL, previous and by_distance, of WATCHED_SEQUENCES test sequences, and loss_test, of all of them."""
    watched = {name: a[:, :WATCHED_SEQUENCES] for name, a in test.items()}
    predicted = strategies(watched["tokens"], model.vocabulary)  # (3, R, B, T, k)

    def attention(params: Params) -> tuple[Array, ...]:
        return model.forward(params, watched).attention

    kinds, far = f"divergence from the strategies {', '.join(STRATEGIES)}", "attention to the token so many places before, less 1 / (t + 1)"
    return (
        Observable("KL", lambda params: divergences(predicted, model.forward(params, watched).outputs), ("strategy",), kinds),
        Observable("previous", lambda params: previous_attention(attention(params)), ("layer", "head"), "attention to the previous token"),
        Observable("by_distance", lambda params: by_distance(attention(params)), ("layer", "head", "distance"), far, costly=True),
        Observable("loss_test", lambda params: model.loss_of(params, test), (), "loss of sequences that are not trained on", costly=True),
    )


SETTINGS = (
    Setting("k", 2, "states", low=2),
    Setting("length", 100, "tokens of a sequence, each followed by its target", low=2),
    Setting("first", "stationary", "law of the first state", choices=FIRSTS),
    Setting("samples", 0, "sequences of a fixed sample, one batch; 0: new ones in every iteration", low=0),
    Setting("batch", 64, "sequences of a new batch", low=1),
    Setting("width", 16, "of the embeddings", low=1),
    Setting("layers", 2, "of attention", low=1),
    Setting("heads", 1, "heads, which divide the width", low=1),
    Setting("init_scale", 0.1, "standard deviation of every weight at the start", low=0.0, open_low=True),
    *adam(0.02),
)


def sequences(values: Settings) -> Sequences:
    """For attention alone, with learned positions, no norms and no biases."""
    k, length = values["k"], values["length"]
    plain = {"norm": "none", "biases": (), "start": "normal", "std": values["init_scale"]}
    return Sequences(
        network_of(values, k, positions=length, at="all", **plain),
        partial(draw_predictions, k=k, length=length, first=values["first"]),
        length=length,
        tests=TEST_SEQUENCES,
        watch=observables,
        exact=lambda test: {"strategy_losses": losses(strategies(test["tokens"], k), test["targets"]).T},
        labels=lambda: {"strategy": STRATEGIES},
        other={"the strategies": TEST_SEQUENCES * length * k * (3 * k + 6)},
    )


DOC = "the next state of a Markov chain that only the context tells (edelman2024evolution)"
TASK = sequence_task("markov", DOC, SETTINGS, sequences, steps=1000)
