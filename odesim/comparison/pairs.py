"""Which System describes which task, and how what a training records becomes what the System has.

A pair that is not in the table goes by name: what both call the same and have in the same shape.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError, no_such

FLOWS = ("sgd", "momentum")  # the optimizers whose path a gradient flow describes


@dataclass(frozen=True)
class TrainingFacts:
    """What a training was: its task and settings, exact arrays of the task, the optimizer with its learning rates {group: rate}.

    model: the word of --model; empty where it is the task's own.
    """

    task: str
    config: Mapping[str, Any]
    exact: Mapping[str, Array]
    optimizer: Mapping[str, Any]
    model: str = ""

    @property
    def momentum(self) -> float:
        """beta of the updates."""
        return float(self.optimizer.get("momentum", 0.0))


Make = Callable[[Mapping[str, Array], TrainingFacts], Array]


@dataclass(frozen=True)
class Link:
    """One row of a comparison: a quantity of a System, by default of the row's name, from observables of the training.

    make: {source: (R, T, *shape)} -> (R, T, *shape of the quantity). theory: what is done to the System's own (R, T, *shape); dims:
    axes that are left of it, None for all. doc: what stands beside what, where the name does not say it.
    """

    name: str
    sources: tuple[str, ...]
    make: Make
    theory: Callable[[Array], Array] = lambda values: values
    dims: tuple[str, ...] | None = None
    of: str = ""
    doc: str = ""

    @property
    def quantity(self) -> str:
        """The System's name of it."""
        return self.of or self.name


@dataclass(frozen=True)
class Pair:
    """A System and a task. step: the System's time of one iteration of plain descent, from the learning rates.

    linear: the states are linear in the trained parameters, so that descent on them is descent on those. start: {state: initial
    values (R, *shape)} from what was recorded at iteration 0; without it the System's own. each: every seed has parameters of its own.
    needs: {setting: the values with which the System describes the task}; more: what else does not fit, in phrases. example:
    {setting: value} over the task's defaults under which the System describes it.
    """

    links: tuple[Link, ...]
    step: Callable[[Mapping[str, float]], float] = lambda rates: 1.0
    linear: bool = True
    start: Mapping[str, Link] = field(default_factory=dict)
    each: bool = False
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    more: Callable[[TrainingFacts], Sequence[str]] = lambda facts: ()
    example: Mapping[str, Any] = field(default_factory=dict)


def same_quantity(name: str, source: str = "") -> Link:
    """The training's observable as it is."""
    source = source or name
    return Link(name, (source,), lambda seen, facts: seen[source])


def collapse_columns(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """Y (R, T, S, K + 1) of Y (R, T, rows, M): the columns of the K next tokens, which are the last, and the mean of the others."""
    K, S = facts.exact["P"].shape
    Y = seen["Y"][:, :, :S]
    if Y.shape[-1] == K + 1:
        return Y
    rest = Y[..., :-K].mean(axis=-1, keepdims=True) if Y.shape[-1] > K else np.zeros((*Y.shape[:-1], 1))
    return np.concatenate([Y[..., -K:], rest], axis=-1)


def distinct_tokens(facts: TrainingFacts) -> Array:
    """Tokens (K, D) that a class alone has, in order. Raises ParamError where classes have not equally many."""
    P = facts.exact["P"]
    own = (P > 0) & ((P > 0).sum(axis=0) == 1)
    if len(set(own.sum(axis=1).tolist())) > 1:
        raise ParamError("the classes of this training have not equally many tokens of their own, so that no symmetric System fits")
    return np.stack([np.flatnonzero(row) for row in own])


def common_tokens(facts: TrainingFacts) -> Array:
    """Tokens (n,) of more than one class."""
    return np.flatnonzero((facts.exact["P"] > 0).sum(axis=0) > 1)


def class_mean(source: str, common: bool) -> Make:
    """Mean over classes of c (R, T, K, S), or of Z (R, T, Q, S) at their queries, at some tokens.

    common: at those of more than one class, in the mean (R, T, 1), not at each class's own (R, T, D).
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
    """Why the classes of a scan_snap training are not all alike."""
    last, common, per_last, unique = (
        facts.config[name] for name in ("num_last", "num_common", "num_common_per_last", "num_unique_per_next")
    )
    found = [f"num_common_per_last is {per_last}, not 0, with num_last={last}"] * bool(per_last and last > 1)
    found += ["there are no common tokens (num_common is 0)"] * (common + per_last == 0)
    return found + ["num_unique_per_next is 0, not more"] * (unique == 0)


def not_exact(facts: TrainingFacts) -> list[str]:
    """Why the flow of a joma_gaussian training is not that of V alone: other classes, another ratio of the rates, momentum."""
    rates, T = facts.optimizer["rates"], facts.config["temperature"]
    ratio = rates["z"] / rates["w"]
    found = [] if np.isclose(ratio, T * T, rtol=1e-12) else [f"eta_z / eta_w is {ratio:g}, not temperature^2 = {T * T:g}"]
    return found + [f"momentum is {facts.momentum:g}, not 0"] * bool(facts.momentum)


def not_several_classes(facts: TrainingFacts) -> list[str]:
    """not_exact(), and one class."""
    return not_exact(facts) + ["num_classes is 1, not more"] * (facts.config["num_classes"] == 1)


def not_yz_model(facts: TrainingFacts) -> list[str]:
    """The model where it is not that of Y and Z."""
    return [f"the model is {facts.model}, not yz"] * (facts.model not in ("", "yz"))


LOSSES = (
    Link("loss", ("loss_population",), lambda seen, _: seen["loss_population"], doc="the training's loss_population, in infinite contexts"),
    Link(
        "loss_batch", ("loss",), lambda seen, _: seen["loss"], of="loss", doc="the training's loss, of its batches, beside the same theory"
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
    same_quantity("c"),
    same_quantity("entropy"),
    Link("entropy_distinct", ("entropy_distinct",), lambda seen, _: seen["entropy_distinct"], lambda x: x.mean(axis=-1), ()),
    Link("Y", ("Y",), collapse_columns),
    Link("Z", ("Z",), lambda seen, facts: seen["Z"][..., : facts.exact["P"].shape[1]]),
)
JOMA_EXAMPLE: Mapping[str, Any] = {"attention": "exp", "signal": "fixed", "temperature": 1}
ONE_NODE = Link("v", ("V",), lambda seen, _: seen["V"][..., 0])

# what the Systems assume of the one-layer model
FULL_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "init": ("zero",),
    "decoder": ("vanilla",),
    "normalize": (True,),
    "residual": (False,),
    "attn_include_query": (False,),
}
DECORRELATED_EXAMPLE: Mapping[str, Any] = {"decoder": "decorrelated", "eta_Z": 0.01}
SYMMETRIC_SETTINGS: Mapping[str, tuple[Any, ...]] = {**FULL_SETTINGS, "P": (None,)}
JOMA_SETTINGS: Mapping[str, tuple[Any, ...]] = {"attention": ("exp",), "phi": ("identity",), "signal": ("fixed",), "cosine": (0,)}

PAIRS: Mapping[tuple[str, str], Pair] = {
    ("scan_snap.full", "scan_snap"): Pair(FULL, needs=FULL_SETTINGS),
    ("scan_snap.symmetric", "scan_snap"): Pair(SYMMETRIC, needs=SYMMETRIC_SETTINGS, more=not_alike),
    ("scan_snap.reduced_symmetric", "scan_snap"): Pair(
        SYMMETRIC, linear=False, needs={**SYMMETRIC_SETTINGS, "decoder": ("decorrelated",)}, more=not_alike, example=DECORRELATED_EXAMPLE
    ),
    ("scan_snap.full", "corpus"): Pair(FULL, needs=FULL_SETTINGS, more=not_yz_model, example={"contexts": "infinite"}),
    # attention is integrated out by an invariant of the flow, which descent does not keep
    ("joma.linear", "joma_gaussian"): Pair(
        (ONE_NODE,),
        lambda rates: rates["w"],
        False,
        {"v": ONE_NODE},
        each=True,
        needs={**JOMA_SETTINGS, "num_classes": (1,)},
        more=not_exact,
        example={**JOMA_EXAMPLE, "num_classes": 1},
    ),
    ("joma.linear_multinode", "joma_gaussian"): Pair(
        (same_quantity("V"),),
        lambda rates: rates["w"],
        False,
        {"V": same_quantity("V")},
        each=True,
        needs=JOMA_SETTINGS,
        more=not_several_classes,
        example=JOMA_EXAMPLE,
    ),
}


def find_pair(system: str, task: str) -> Pair | None:
    """The pair of that System and task; None where they have to go by name."""
    return PAIRS.get((system, task))


def misfits(pair: Pair, facts: TrainingFacts) -> list[str]:
    """What keeps the System from describing this training, a phrase a setting; nothing where it does."""
    found = [
        f"{name} is {setting_text(facts.config[name])}, not {' or '.join(map(setting_text, right))}"
        for name, right in pair.needs.items()
        if name in facts.config and facts.config[name] not in right
    ]
    return [*found, *pair.more(facts)]


def setting_text(value: Any) -> str:
    """A setting as it would be written; an array is given, and None is not."""
    if isinstance(value, bool):
        return str(value).lower()
    return "given" if isinstance(value, list) else "left out" if value is None else str(value)


def check_described(system: str, facts: TrainingFacts, theory: Mapping[str, Any]) -> None:
    """Raises ParamError, with every setting that does not fit, unless the training's task says which parameters of the System it has."""
    pair = find_pair(system, facts.task)
    wrong = misfits(pair, facts) if pair else []
    if wrong:
        raise ParamError(f"{system} does not describe this training of {facts.task}: {'; '.join(wrong)}")
    if system not in theory:
        known = {*theory, *(name for name, task in PAIRS if task == facts.task)} - {system}
        if not known:
            raise ParamError(f"no System describes {facts.task} with these settings, so that {system!r} cannot be held against it")
        raise ParamError(no_such("System", system, known, f"the theory of {facts.task}"))


def check_flow(facts: TrainingFacts) -> None:
    """Raises ParamError where the optimizer follows no gradient flow in the limit of small steps."""
    name, decay = facts.optimizer.get("name", "sgd"), facts.optimizer.get("weight_decay", 0.0)
    if name not in FLOWS:
        raise ParamError(f"a gradient flow describes the optimizers {' and '.join(FLOWS)}, not {name}")
    if decay:
        raise ParamError(f"the Systems have no weight decay, and this training has {decay:g}")
