"""The task scan_snap: next tokens of queries, with distinct tokens that determine the class and common tokens that do not.

Source: tian2023scan, Sec. 6 (Syn-Small, Syn-Medium) and its code, facebookresearch/luckmatters, `ssl/real-dataset/decoder_only.py`. With
rng=official a seed is the run of that code with that seed, up to the rounding of its float32; else numpy's generators draw.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from odesim.base.arrays import check_dtype
from odesim.base.errors import ParamError, counted, no_such
from odesim.reference.data.scan_snap_contexts import BLOCK, ScanSnapContexts
from odesim.reference.data.scan_snap_official import OfficialContexts, official_start, official_weights
from odesim.reference.data.scan_snap_tables import (
    GENERATOR_SETTINGS,
    TABLE_SETTINGS,
    Classes,
    classes_from_settings,
    generate_classes,
    symmetric_params,
    with_idle_classes,
)
from odesim.reference.one_layer.model import DECODERS, INITS, YZ
from odesim.reference.protocols import Batch, Experiment, Optimizer, Params, Setting, Stream
from odesim.reference.training.optimizers import OPTIMIZERS
from odesim.reference.training.randomness import RNGS

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


def population_batch(iteration: int) -> Batch:
    """The empty batch, for the gradient of the population."""
    return {}


class ScanSnap:
    """The task scan_snap; its settings are SETTINGS."""

    name = "scan_snap"
    doc = "classes told by their distinct tokens (tian2023scan, Syn-Small and Syn-Medium), or by a given P in infinite contexts"
    settings = SETTINGS
    models = ("yz",)

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
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

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError if settings do not fit together."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, "scan_snap"))
        check_dtype(dtype)
        population = values["P"] is not None
        (check_population if population else check_samples)(values, seeds)
        classes = classes_from_settings(values) if population else generate_classes(values)
        names = ("normalize", "residual", "attn_include_query", "decoder", "init")
        targets = None if population else int(classes.M) - len(classes.P) + np.arange(len(classes.P))
        yz = YZ(**vars(classes), targets=targets, **{name: values[name] for name in names})
        rates = {"Y": values["eta_Y"], "Z": values["eta_Z"]}
        return Experiment(
            task=self.name,
            config={
                name: np.asarray(value).tolist() if name in TABLE_SETTINGS and value is not None else value
                for name, value in values.items()
                if name != TOKENS
            },
            seeds=tuple(seeds),
            model=yz,
            stream=population_batch if population else make_contexts(yz, values, seeds, dtype),
            start=make_start(yz, values, seeds),
            optimizer=Optimizer(values["optimizer"], rates, momentum=values["momentum"]),
            steps=STEPS,
            vocabulary=int(classes.M),
            exact=vars(classes),
            theory=theory(values, classes),
            labels={"l": token_names(values[TOKENS], classes.P.shape[1])} if values[TOKENS] else {},
        )


def check_population(values: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Raises ParamError for settings that have no meaning with a given P."""
    if len(seeds) != 1:
        raise ParamError(f"a given P trains without chance, so that one seed is all there is, not {len(seeds)}")
    if values["attn_include_query"]:
        raise ParamError("attn_include_query needs finite contexts: with a given P they are infinite, and the query's share is 0")
    if values["init"] != "zero":
        raise ParamError(f"init must be zero where P is given, which keeps one column of Y for all other tokens, not {values['init']}")
    for setting in SETTINGS:
        if setting.name in SAMPLE_SETTINGS and values[setting.name] != setting.default:
            raise ParamError(f"{setting.name} has no meaning where P is given: the table is P's, and contexts are infinite")


def check_samples(values: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Raises ParamError for settings that have a meaning only with a given P."""
    if not seeds:
        raise ParamError("a training needs one seed at least")
    given = [name for name in ("psi", "p", "M") if values[name] is not None] + [TOKENS] * bool(values[TOKENS])
    if given:
        raise ParamError(f"{given[0]} has no meaning without P: the generator's settings fix it")


def token_names(text: str, count: int) -> tuple[str, ...]:
    """The names of `count` tokens: the first cell of each line, without a heading. Raises ParamError if they are more or fewer."""
    names = [line.split(",")[0].strip() for line in text.splitlines() if line.strip()]
    if len(names) not in (count, count + 1):
        raise ParamError(f"{TOKENS} has {counted(len(names), 'name')}, and P has {counted(count, 'column')}")
    return tuple(names[-count:])


def make_contexts(yz: YZ, values: Mapping[str, Any], seeds: Sequence[int], dtype: str) -> Stream:
    """The Stream of random contexts: length - 1 tokens before the query."""
    if values["rng"] == "official":
        weights = official_weights(values["num_common"] + values["num_common_per_last"], values["num_unique_per_next"])
        sizes = {"batch": values["batch"], "length": values["length"] - 1, "drawn_before": 2 * int(yz.M) ** 2}
        return OfficialContexts(seeds, weights, len(yz.P), **sizes, dtype=dtype)
    P = np.take_along_axis(yz.P, yz.counted_tokens, axis=1)
    return ScanSnapContexts(seeds, P, batch=values["batch"], length=values["length"] - 1, dtype=dtype)


def make_start(yz: YZ, values: Mapping[str, Any], seeds: Sequence[int]) -> Callable[[str], Params] | None:
    """The start of the published runs, a function of the dtype; None where the model starts by itself."""
    if values["rng"] != "official" or values["init"] != "torch":
        return None
    (rows, M), (Q, _) = yz.shapes
    return partial(official_start, tuple(seeds), M, yz.P.shape[1] + np.arange(Q), rows)


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
    systems = {whole: {**vars(classes), **rates}}
    return systems if symmetric is None else {**systems, small: {**symmetric, **rates}}


TASK = ScanSnap()
