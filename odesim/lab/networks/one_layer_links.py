"""Quantities of the Systems scan_snap.* from what a training of the one-layer model records: for the tasks scan_snap and corpus.

From a random start the columns of Y differ. Then scan_snap.full has the K classes of the training first. After them it has a class that
never occurs for each other token of the vocabulary. So Y has a column for every token (and one more, which stands for none).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.lab.training.protocols import Link, Make, TrainingFacts, same_quantity

# settings of the one-layer model that the Systems assume
FULL_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "init": ("zero",),
    "decoder": ("vanilla",),
    "normalize": (True,),
    "residual": (False,),
    "attn_include_query": (False,),
}
ANY_START_SETTINGS = {name: values for name, values in FULL_SETTINGS.items() if name != "init"}
DECORRELATED_EXAMPLE: Mapping[str, Any] = {"decoder": "decorrelated", "eta_Z": 0.01}
SYMMETRIC_SETTINGS: Mapping[str, tuple[Any, ...]] = {**FULL_SETTINGS, "P": (None,)}


def starts_at_random(facts: TrainingFacts) -> bool:
    """Whether each seed has a start of its own."""
    return bool(facts.config.get("init") == "torch")


def collapse_columns(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """Y (R, T, S, K + 1) from the recorded Y (R, T, rows, M): the last K columns and the mean of the others.

    The last K columns are those of next tokens.

    From a random start Y (R, T, S, M): the last K columns, and all others.
    """
    K, S = facts.exact["P"].shape
    Y = seen["Y"][:, :, :S]
    if starts_at_random(facts):
        return np.concatenate([Y[..., -K:], Y[..., :-K]], axis=-1)
    if Y.shape[-1] == K + 1:
        return Y
    rest = Y[..., :-K].mean(axis=-1, keepdims=True) if Y.shape[-1] > K else np.zeros((*Y.shape[:-1], 1))
    return np.concatenate([Y[..., -K:], rest], axis=-1)


def with_no_token(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """The System's Y (R, T, S, M + 1) from the recorded one of a random start: the last column, of no token, is 0."""
    Y = collapse_columns(seen, facts)
    return np.concatenate([Y, np.zeros((*Y.shape[:-1], 1))], axis=-1)


def of_tokens(Y: Array, facts: TrainingFacts) -> Array:
    """The System's Y without the column of no token."""
    return Y[..., :-1] if starts_at_random(facts) else Y


def that_occur(values: Array, facts: TrainingFacts) -> Array:
    """Values (R, T, n, ...) of the classes that occur."""
    return values[:, :, : len(facts.exact["P"])]


def context_rows(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """Z (R, T, Q, S) without the columns of queries."""
    return seen["Z"][..., : facts.exact["P"].shape[1]]


def distinct_tokens(facts: TrainingFacts) -> Array:
    """The tokens (K, D) of each class that no other class has, in order. Raises ParamError if classes have different numbers of them."""
    P = facts.exact["P"]
    distinct = (P > 0) & ((P > 0).sum(axis=0) == 1)
    if len(set(distinct.sum(axis=1).tolist())) > 1:
        raise ParamError("the classes of this training have not equally many tokens of their own, so that no symmetric System fits")
    return np.stack([np.flatnonzero(row) for row in distinct])


def common_tokens(facts: TrainingFacts) -> Array:
    """The tokens (n,) that more than one class has."""
    return np.flatnonzero((facts.exact["P"] > 0).sum(axis=0) > 1)


def class_mean(source: str, common: bool) -> Make:
    """A conversion of c (R, T, K, S), or of Z (R, T, Q, S) at the queries of classes, to its mean over classes.

    common: the mean over common tokens (R, T, 1); else at the distinct tokens of each class (R, T, D).
    """

    def make(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
        values = seen[source]
        if source == "Z":
            values = values[:, :, np.asarray(facts.exact["psi"], int)]  # (R, T, K, S)
        if common:
            return values[..., common_tokens(facts)].mean(axis=(-2, -1))[..., None]
        tokens = distinct_tokens(facts)
        return values[:, :, np.arange(len(tokens))[:, None], tokens].mean(axis=2)

    return make


def not_alike(facts: TrainingFacts) -> list[str]:
    """Phrases on why the classes of a scan_snap training are not symmetric; empty if they are."""
    last, common, per_last, unique = (
        facts.config[name] for name in ("num_last", "num_common", "num_common_per_last", "num_unique_per_next")
    )
    phrases = [f"num_common_per_last is {per_last}, not 0, with num_last={last}"] * bool(per_last and last > 1)
    phrases += ["there are no common tokens (num_common is 0)"] * (common + per_last == 0)
    return phrases + ["num_unique_per_next is 0, not more"] * (unique == 0)


def no_shared_token(facts: TrainingFacts) -> list[str]:
    """A phrase if the start is random and no token is of two classes, which the classes that never occur could see."""
    return ["init is torch, and no token is of two classes"] * (starts_at_random(facts) and not common_tokens(facts).size)


def not_yz_model(facts: TrainingFacts) -> list[str]:
    """A phrase if the model is not `yz`."""
    return [f"the model is {facts.model}, not yz"] * (facts.model not in ("", "yz"))


LOSSES = (
    same_quantity("loss", "loss_population", "the training's loss_population, in infinite contexts"),
    Link(
        "loss_batch",
        ("loss",),
        lambda seen, _: seen["loss"],
        system_name="loss",
        doc="the training's loss, of its batches, beside the same theory",
    ),
)
SYMMETRIC = (
    *LOSSES,
    Link("c", ("c",), class_mean("c", common=False)),
    Link("cc", ("c",), class_mean("c", common=True)),
    Link("z", ("Z",), class_mean("Z", common=False)),
    Link("zc", ("Z",), class_mean("Z", common=True)),
)
FULL = (
    *LOSSES,
    Link("c", ("c",), lambda seen, _: seen["c"], that_occur),
    Link("entropy", ("entropy",), lambda seen, _: seen["entropy"], that_occur),
    Link(
        "entropy_distinct",
        ("entropy_distinct",),
        lambda seen, _: seen["entropy_distinct"],
        lambda values, facts: that_occur(values, facts).mean(axis=-1),
        (),
    ),
    Link("Y", ("Y",), collapse_columns, of_tokens),
    Link("Z", ("Z",), context_rows),
)
STARTS = {"Y": Link("Y", ("Y",), with_no_token), "Z": Link("Z", ("Z",), context_rows)}
