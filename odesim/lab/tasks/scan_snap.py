"""The task scan_snap: next tokens of queries, with distinct tokens that determine the class and common tokens that do not.

Source: tian2023scan, Sec. 6 (Syn-Small, Syn-Medium) and its code, facebookresearch/luckmatters, `ssl/real-dataset/decoder_only.py`. With
rng=official a seed is the run of that code with that seed, up to the rounding of its float32; else numpy's generators draw.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.one_layer import (
    DECODERS,
    FULL,
    FULL_SETTINGS,
    INITS,
    STARTS,
    SYMMETRIC,
    YZ,
    check_classes,
    no_shared_token,
    not_alike,
    starts_at_random,
)
from odesim.lab.training.optimizers import OPTIMIZERS
from odesim.lab.training.randomness import OFFICIAL_SHIFT, RNGS, InBlocks, InOrder, TorchGenerator
from odesim.lab.training.task import Batch, Experiment, Pair, Params, ReferenceTask, Setting, Settings, Stream, as_config

# Classes of the task scan_snap: from the generator of the paper's code, or from a given table.

GENERATOR_SETTINGS = ("num_last", "num_next_per_last", "num_common", "num_common_per_last", "num_unique_per_next")


Classes = dict[str, Any]
"""K classes: P (K, S), psi (K,), p (K,) and M, the parameters of scan_snap.full."""


def generate_classes(values: Mapping[str, Any]) -> Classes:
    """Classes as Dataset2 of `ssl/real-dataset/decoder_only.py` in facebookresearch/luckmatters generates them.

    Order of tokens: common, common to a query, distinct of each class (weights from 0.1 to 1, else 1), queries, next tokens.
    """
    last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
    if common + per_last + unique == 0:
        raise ParamError("num_common, num_common_per_last and num_unique_per_next are all 0: contexts have no tokens to hold")
    K = last * next_
    psi = np.arange(K) // next_
    weights = np.zeros((K, common + per_last * last + unique * K))
    weights[:, :common] = 1
    for n in range(K):
        shared, distinct = common + per_last * psi[n], common + per_last * last + unique * n
        weights[n, shared : shared + per_last] = 1
        weights[n, distinct : distinct + unique] = np.linspace(0.1, 1, unique)
    P, M = weights / weights.sum(axis=1, keepdims=True), float(weights.shape[1] + last + K)
    return {"P": P, "psi": psi, "p": np.full(K, 1 / K), "M": M}


def classes_from_settings(values: Mapping[str, Any]) -> Classes:
    """Classes from the settings P, psi, p and M. Raises ParamError if they are inconsistent."""
    P = np.array(values["P"], float)
    K, S = (*P.shape, 1, 1)[:2]  # of another shape P is refused below
    psi = np.arange(K) if values["psi"] is None else np.array(values["psi"], float)
    p = np.full(K, 1 / K) if values["p"] is None else np.array(values["p"], float)
    if psi.size == 0 or np.any(psi != np.floor(psi)):
        raise ParamError("psi must hold whole numbers, the query of each class")
    if np.size(values["M"]) != 1:
        raise ParamError(f"M must be one number, the tokens of the vocabulary, not {np.size(values['M'])}")
    M = S + float(np.max(psi)) + 1 + K if values["M"] is None else float(np.ravel(values["M"])[0])
    check_classes(P, psi, p, M)
    return {"P": P, "psi": psi.astype(int), "p": p, "M": M}


def with_idle_classes(classes: Classes) -> dict[str, Any] | None:
    """Parameters of scan_snap.full where Y has a column for every token: a class of probability 0 for each that is never next.

    Such a class sees a token that classes share, so that their own tokens stay their own; None if there is no such token.
    """
    shared = np.flatnonzero((classes["P"] > 0).sum(axis=0) > 1)
    if not shared.size:
        return None
    K, S = classes["P"].shape
    none = np.zeros(int(classes["M"]) - K)
    idle = {"P": np.tile(np.arange(S) == shared[0], (len(none), 1)).astype(float), "psi": none.astype(int), "p": none}
    return classes | {name: np.concatenate([classes[name], more]) for name, more in idle.items()}


def symmetric_params(values: Mapping[str, Any], classes: Classes) -> dict[str, Any] | None:
    """The parameters of scan_snap.symmetric and its reduced flow, or None if the generated classes are not symmetric.

    Classes are not symmetric if each query has common tokens of its own; the Systems also need common and distinct tokens.
    """
    last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
    shared = common + (per_last if last == 1 else 0)
    if (per_last and last > 1) or not shared or not unique:
        return None
    return {
        "p": classes["P"][0, classes["P"].shape[1] - unique * last * next_ :][:unique],
        "pc": classes["P"][0, :1],
        "mc": np.array([float(shared)]),
        "K": float(last * next_),
        "M": classes["M"],
        "k_m": float(next_),
    }


# Random contexts of a class: tokens drawn from its distribution, stored as counts.

BLOCK = 64  # iterations drawn at once
BUCKETS = 2**16


class TokenCounts:
    """Draws tokens from P (W,) and counts them. 16 random bits for each token choose one of 2^16 buckets.

    Each token has floor(P * 2^16) buckets. The remaining buckets mean a second draw, from the rounding errors of the probabilities.
    The distribution is therefore P, up to rounding of P * 2^16 and of a uniform number.
    """

    def __init__(self, P: Array) -> None:
        scaled = P / P.sum() * BUCKETS
        buckets = np.floor(scaled)
        self.tokens = len(P)
        self.bucket = np.repeat(
            np.arange(self.tokens + 1, dtype=np.min_scalar_type(self.tokens)), np.append(buckets, BUCKETS - buckets.sum()).astype(int)
        )
        rest = np.cumsum(scaled - buckets)
        self.rest = rest / rest[-1] if rest[-1] > 0 else rest

    def counts(self, rng: Generator, contexts: int, length: int) -> Array:
        """Counts (contexts, W) of tokens in contexts of `length` tokens each."""
        bits = rng.integers(0, 2**64, size=-(-contexts * length // 4), dtype=np.uint64).view(np.uint16)[: contexts * length]
        # with other integers than intp numpy is ten times slower
        chosen = self.bucket.take(bits.astype(np.intp)).reshape(contexts, length).astype(np.intp)
        chosen += (self.tokens + 1) * np.arange(contexts)[:, None]
        table = np.bincount(chosen.ravel(), minlength=contexts * (self.tokens + 1)).reshape(contexts, self.tokens + 1)
        redrawn = np.repeat(np.arange(contexts), table[:, -1])
        np.add.at(table, (redrawn, np.searchsorted(self.rest, rng.random(len(redrawn)), side="right")), 1)
        return table[:, :-1]


def drawn_contexts(seeds: Sequence[int], P: Array, *, batch: int, length: int) -> Stream:
    """A Stream {"classes": (R, batch), "counts": (R, batch, W)}: uniform classes with `length` i.i.d. tokens each from P (K, W)."""
    draws = [TokenCounts(row) for row in P]

    def of_seed(rng: Generator, _: int) -> Batch:
        classes = rng.integers(0, len(draws), size=(BLOCK, batch))
        counts = np.empty((classes.size, draws[0].tokens), np.min_scalar_type(length))
        for n, of_n in enumerate(draws):
            (of_class,) = np.nonzero(classes.ravel() == n)
            # a few contexts at a time, so that the table stays in the cache
            for part in np.array_split(of_class, -(-of_class.size * length // BUCKETS)) if of_class.size else ():
                counts[part] = of_n.counts(rng, len(part), length)
        return {"classes": classes, "counts": counts.reshape(*classes.shape, -1)}

    return InBlocks(seeds, BLOCK, of_seed)


# Start and contexts of the published runs of tian2023scan, number for number, from the seeds of its code.
#
# Source: facebookresearch/luckmatters, `ssl/real-dataset/decoder_only.py`, and `set_all_seeds` of `ssl/common_utils/helper.py`: a run with
# seed s has Python's generator with seed s and torch's with seed s + 2. Torch draws the start, the decoder before the attention, also
# where both are then set to 0. For each sequence Python draws the class and torch the tokens.


def official_start(seeds: Sequence[int], yz: YZ, dtype: str) -> Params:
    """Y (R, rows, M) and Z (R, Q, rows) as torch starts two linear layers of M inputs and outputs; queries stand after the tokens of P."""
    (rows, M), (Q, _) = yz.shapes
    bound, Y, Z = M**-0.5, [], []
    for seed in seeds:
        torch = TorchGenerator(seed + OFFICIAL_SHIFT)
        decoder, attention = (torch.uniform(-bound, bound, (M, M)) for _ in range(2))  # row: output
        Y.append(decoder.T[:rows])
        Z.append(attention[yz.P.shape[1] + np.arange(Q), :rows])
    return {"Y": np.array(Y, dtype), "Z": np.array(Z, dtype)}


def official_weights(common: int, unique: int) -> Array:
    """Probabilities (W,) of a class's tokens, float32: weight 1 of `common` ones, then its own, 0.1 to 1 as torch.linspace rounds."""
    low, high = np.float32(0.1), np.float32(1)
    step = (high - low) / np.float32(max(unique - 1, 1))
    up = np.arange(unique)
    rising, falling = float(low) + float(step) * up, float(high) - float(step) * up[::-1]
    distinct = np.where(up < unique // 2, rising, falling) if unique > 1 else np.full(unique, low)
    weights = np.concatenate([np.ones(common), distinct]).astype(np.float32)
    return weights / weights.sum()


def official_contexts(seeds: Sequence[int], weights: Array, K: int, drawn_before: int, *, batch: int, length: int) -> Stream:
    """A Stream {"classes": (R, batch), "counts": (R, batch, W)}: classes 0 to K - 1, `length` tokens each with these weights (W,).

    drawn_before: torch's 32-bit outputs that the start took.
    """
    W = len(weights)

    def begin(seed: int) -> tuple[Random, TorchGenerator]:
        torch = TorchGenerator(seed + OFFICIAL_SHIFT)
        torch.skip(drawn_before)
        return Random(seed), torch

    def draw_classes(python: Random, batches: int) -> list[int]:
        return [python.choice(range(K)) for _ in range(batches * batch)]

    def skip(pair: tuple[Random, TorchGenerator], batches: int) -> None:
        draw_classes(pair[0], batches)
        pair[1].skip(2 * batches * batch * length)

    def draw(pair: tuple[Random, TorchGenerator]) -> Batch:
        tokens = pair[1].multinomial(weights, batch * length).reshape(batch, length)
        places = tokens + W * np.arange(batch)[:, None]
        counts = np.bincount(places.ravel(), minlength=W * batch).reshape(batch, W)
        return {"classes": np.array(draw_classes(pair[0], 1)), "counts": counts}

    return InOrder(seeds, begin, skip, draw)


SAMPLE_SETTINGS = (*GENERATOR_SETTINGS, "length", "batch", "rng")
STEPS = 100
TOKENS = "tokens"

SETTINGS = (
    Setting("num_last", 2, "queries, the last tokens of contexts", low=1),
    Setting("num_next_per_last", 1, "classes, that is next tokens, of each query", low=1),
    Setting("num_common", 10, "context tokens common to all classes", low=0),
    Setting("num_common_per_last", 0, "context tokens common to the classes of one query", low=0),
    Setting("num_unique_per_next", 10, "context tokens of each class alone, weights 0.1 to 1", low=0),
    Setting("length", 128, "tokens of a sequence, the query included", low=2),
    Setting("batch", 128, "sequences of a batch", low=1),
    Setting("eta_Y", 1.0, "learning rate of the decoder", low=0.0),
    Setting("eta_Z", 1.0, "learning rate of the attention", low=0.0),
    Setting("optimizer", "sgd", "rule of the updates", choices=OPTIMIZERS),
    Setting("momentum", 0.9, "of the optimizers sgd and momentum", low=0.0, high=1.0),
    Setting("init", "zero", "start of Y and Z: 0, or as torch starts a linear layer", choices=INITS),
    Setting("rng", "numpy", "random numbers: numpy's, or of the paper's code, whose runs a seed then replays", choices=RNGS),
    Setting("decoder", "vanilla", "gradient of Y: its own, or decorrelated (Lemma 3)", choices=DECODERS),
    Setting("normalize", True, "what is attended is divided by its length"),
    Setting("residual", False, "the query is added to what it attends"),
    Setting("attn_include_query", False, "the query attends itself as well"),
    Setting("P", None, "P[n, l] of a table of one's own: trains on infinite contexts"),
    Setting("psi", None, "with P: the query of each class, or one each", rank=1),
    Setting("p", None, "with P: probabilities of the classes, or all the same", rank=1),
    Setting("M", None, "with P: tokens of the vocabulary, or just those that occur"),
    Setting(TOKENS, "", "with P: names of its columns for pictures, one a line; of a table the first column"),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: the table P, Y and Z with gradients, batches."""
    if values["P"] is not None:
        K, S = (*np.shape(values["P"]), 1)[:2]
        columns, queries, tokens, random_numbers = K + 1, K, S, 0
    else:
        last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
        K, S, tokens, queries = last * next_, common + per_last * last + unique * last * next_, common + per_last + unique, last
        columns = S + last + K
        random_numbers = BLOCK * values["batch"] * (tokens // 4 + 2) + 4 * values["length"]
    batch = values["batch"] if values["P"] is None else K
    return {
        "the table P": 4 * K * S,
        "Y, Z and their gradients": seeds * (columns * 4 + queries * 6 + K * 4) * S,
        "the batches": seeds * (random_numbers + batch * (tokens + K)) + 2 * batch * (S + columns),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError if settings do not fit together."""
    population = values["P"] is not None
    check_together(values, seeds)
    classes = classes_from_settings(values) if population else generate_classes(values)
    names = ("normalize", "residual", "attn_include_query", "decoder", "init")
    targets = None if population else int(classes["M"]) - len(classes["P"]) + np.arange(len(classes["P"]))
    yz = YZ(**classes, targets=targets, **{name: values[name] for name in names})
    return Experiment(
        config=as_config({name: value for name, value in values.items() if name != TOKENS}),
        model=yz,
        stream=(lambda iteration: {}) if population else make_contexts(yz, values, seeds, dtype),
        start=partial(official_start, tuple(seeds), yz) if (values["rng"], values["init"]) == ("official", "torch") else None,
        steps=STEPS,
        exact=classes,
        theory=theory(values, classes),
        labels={"l": token_names(values[TOKENS], classes["P"].shape[1])} if values[TOKENS] else {},
    )


def check_together(values: Settings, seeds: Sequence[int]) -> None:
    """Raises ParamError for settings that have no meaning with a given P, or only with one, and where there is no seed."""
    if not seeds:
        raise ParamError("a training needs one seed at least")
    if values["P"] is None:
        for name in ("psi", "p", "M", TOKENS):
            if values[name] is not None and not (name == TOKENS and not values[name]):
                raise ParamError(f"{name} has no meaning without P: the generator's settings fix it")
        return
    if len(seeds) != 1:
        raise ParamError(f"a given P trains without chance, so that one seed is all there is, not {len(seeds)}")
    if values["attn_include_query"]:
        raise ParamError("attn_include_query needs finite contexts: with a given P they are infinite, and the query's share is 0")
    if values["init"] != "zero":
        raise ParamError(f"init must be zero where P is given, which keeps one column of Y for all other tokens, not {values['init']}")
    for setting in SETTINGS:
        if setting.name in SAMPLE_SETTINGS and values[setting.name] != setting.default:
            raise ParamError(f"{setting.name} has no meaning where P is given: the table is P's, and contexts are infinite")


def token_names(text: str, count: int) -> tuple[str, ...]:
    """The names of `count` tokens: the first cell of each line, without a heading. Raises ParamError if they are more or fewer."""
    names = [line.split(",")[0].strip() for line in text.splitlines() if line.strip()]
    if len(names) not in (count, count + 1):
        raise ParamError(f"{TOKENS} has {counted(len(names), 'name')}, and P has {counted(count, 'column')}")
    return tuple(names[-count:])


def make_contexts(yz: YZ, values: Settings, seeds: Sequence[int], dtype: str) -> Stream:
    """The Stream of random contexts: length - 1 tokens before the query, counted in whole numbers until a batch is used."""
    sizes = {"batch": values["batch"], "length": values["length"] - 1}
    if values["rng"] == "official":
        weights = official_weights(values["num_common"] + values["num_common_per_last"], values["num_unique_per_next"])
        stream = official_contexts(seeds, weights, len(yz.P), 2 * int(yz.M) ** 2, **sizes)
    else:
        stream = drawn_contexts(seeds, np.take_along_axis(yz.P, yz.counted_tokens, axis=1), **sizes)

    def contexts(iteration: int) -> Batch:
        batch = stream(iteration)
        return {**batch, "counts": batch["counts"].astype(dtype)}

    return contexts


def theory(values: Mapping[str, Any], classes: Classes) -> dict[str, dict[str, Any]]:
    """{System: parameters} that describe the training; empty for options without a System."""
    if values["residual"] or values["attn_include_query"] or not values["normalize"]:
        return {}
    rates = {"eta_Y": values["eta_Y"], "eta_Z": values["eta_Z"]}
    if values["init"] != "zero":
        every_token = with_idle_classes(classes) if values["decoder"] == "vanilla" else None
        return {} if every_token is None else {"scan_snap.full": {**every_token, **rates}}
    symmetric = None if values["P"] is not None else symmetric_params(values, classes)
    if values["decoder"] == "decorrelated":
        whole, small = "scan_snap.full_decorrelated", "scan_snap.reduced_symmetric"
    else:
        whole, small = "scan_snap.full", "scan_snap.symmetric"
    systems = {whole: {**classes, **rates}}
    return systems if symmetric is None else {**systems, small: {**symmetric, **rates}}


DECORRELATED: Mapping[str, tuple[Any, ...]] = {**FULL_SETTINGS, "decoder": ("decorrelated",)}
DOC = "classes told by their distinct tokens (tian2023scan, Syn-Small and Syn-Medium), or by a given P in infinite contexts"
PAIRS = {
    "scan_snap.full": Pair(
        FULL,
        start=STARTS,
        own_start=starts_at_random,
        requirements={name: values for name, values in FULL_SETTINGS.items() if name != "init"},
        other_misfits=no_shared_token,
    ),
    "scan_snap.full_decorrelated": Pair(FULL, requirements=DECORRELATED, example={"decoder": "decorrelated"}),
    "scan_snap.symmetric": Pair(SYMMETRIC, requirements={**FULL_SETTINGS, "P": (None,)}, other_misfits=not_alike),
    "scan_snap.reduced_symmetric": Pair(
        SYMMETRIC,
        linear=False,
        requirements={**DECORRELATED, "P": (None,)},
        other_misfits=not_alike,
        example={"decoder": "decorrelated", "eta_Z": 0.01},
    ),
}
TASK = ReferenceTask("scan_snap", DOC, SETTINGS, make, memory, ("yz",), PAIRS)
