"""The table of Systems and the tasks that they describe, with the conversion of recorded observables to quantities of the System.

A System and a task that are not in the table are compared by names and shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError, no_such
from odesim.reference.tasks import TASKS

FLOWS = ("sgd", "momentum")  # optimizers that follow a gradient flow


@dataclass(frozen=True)
class TrainingFacts:
    """The facts of a training that decide which theory describes it: task, settings, exact arrays, optimizer with learning rates.

    model: the name of --model, empty for the task's default.
    """

    task: str
    config: Mapping[str, Any]
    exact: Mapping[str, Array]
    optimizer: Mapping[str, Any]
    model: str = ""

    @property
    def momentum(self) -> float:
        """The momentum beta of the optimizer, 0 without one."""
        return float(self.optimizer.get("momentum", 0.0))


Make = Callable[[Mapping[str, Array], TrainingFacts], Array]


@dataclass(frozen=True)
class Link:
    """A row of a comparison: a quantity of a System, computed from observables of the training.

    sources: the observables. make({source: (R, T, *shape)}, facts): the quantity (R, T, *shape). theory(values): a reduction of the
    System's quantity (R, T, *shape); dims: the axes that remain, None for all. system_name: the quantity in the System, if it is
    not the row's name. doc: which quantities are compared, if the name is not enough.
    """

    name: str
    sources: tuple[str, ...]
    make: Make
    theory: Callable[[Array], Array] = lambda values: values
    dims: tuple[str, ...] | None = None
    system_name: str = ""
    doc: str = ""

    @property
    def quantity(self) -> str:
        """The name of the quantity in the System."""
        return self.system_name or self.name


@dataclass(frozen=True)
class Pair:
    """How a System describes a task. step(rates): the System's time of one iteration of plain descent.

    linear: whether states are linear in the trained parameters, so that descent on one is descent on the other.
    start {state: Link}: initial values (R, *shape) from iteration 0; without it those of the System.
    per_seed: whether every seed has its own parameters of the System. requirements {setting: values that the System describes}.
    other_misfits(facts): phrases on what else does not fit. example {setting: value}: settings, beside defaults, that it describes.
    """

    links: tuple[Link, ...]
    step: Callable[[Mapping[str, float]], float] = lambda rates: 1.0
    linear: bool = True
    start: Mapping[str, Link] = field(default_factory=dict)
    per_seed: bool = False
    requirements: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    other_misfits: Callable[[TrainingFacts], Sequence[str]] = lambda facts: ()
    example: Mapping[str, Any] = field(default_factory=dict)


def same_quantity(name: str, source: str = "") -> Link:
    """A Link to an observable of the training without conversion. source: its name, if it is another one."""
    source = source or name
    return Link(name, (source,), lambda seen, facts: seen[source])


def collapse_columns(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """Y (R, T, S, K + 1) from the recorded Y (R, T, rows, M): the last K columns, of next tokens, and the mean of the others."""
    K, S = facts.exact["P"].shape
    Y = seen["Y"][:, :, :S]
    if Y.shape[-1] == K + 1:
        return Y
    rest = Y[..., :-K].mean(axis=-1, keepdims=True) if Y.shape[-1] > K else np.zeros((*Y.shape[:-1], 1))
    return np.concatenate([Y[..., -K:], rest], axis=-1)


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
    found = [f"num_common_per_last is {per_last}, not 0, with num_last={last}"] * bool(per_last and last > 1)
    found += ["there are no common tokens (num_common is 0)"] * (common + per_last == 0)
    return found + ["num_unique_per_next is 0, not more"] * (unique == 0)


def not_exact(facts: TrainingFacts) -> list[str]:
    """Phrases on why V alone does not determine the flow of a joma_gaussian training: ratio of the rates, momentum."""
    rates, T = facts.optimizer["rates"], facts.config["temperature"]
    ratio = rates["z"] / rates["w"]
    found = [] if np.isclose(ratio, T * T, rtol=1e-12) else [f"eta_z / eta_w is {ratio:g}, not temperature^2 = {T * T:g}"]
    return found + [f"momentum is {facts.momentum:g}, not 0"] * bool(facts.momentum)


def not_several_classes(facts: TrainingFacts) -> list[str]:
    """The phrases of not_exact(), and one if there is a single class."""
    return not_exact(facts) + ["num_classes is 1, not more"] * (facts.config["num_classes"] == 1)


def not_yz_model(facts: TrainingFacts) -> list[str]:
    """A phrase if the model is not `yz`."""
    return [f"the model is {facts.model}, not yz"] * (facts.model not in ("", "yz"))


LOSSES = (
    Link("loss", ("loss_population",), lambda seen, _: seen["loss_population"], doc="the training's loss_population, in infinite contexts"),
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
    same_quantity("c"),
    same_quantity("entropy"),
    Link("entropy_distinct", ("entropy_distinct",), lambda seen, _: seen["entropy_distinct"], lambda x: x.mean(axis=-1), ()),
    Link("Y", ("Y",), collapse_columns),
    Link("Z", ("Z",), lambda seen, facts: seen["Z"][..., : facts.exact["P"].shape[1]]),
)
JOMA_EXAMPLE: Mapping[str, Any] = {"attention": "exp", "signal": "fixed", "temperature": 1}
ONE_NODE = Link("v", ("V",), lambda seen, _: seen["V"][..., 0])

# settings of the one-layer model that the Systems assume
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
    ("scan_snap.full", "scan_snap"): Pair(FULL, requirements=FULL_SETTINGS),
    ("scan_snap.symmetric", "scan_snap"): Pair(SYMMETRIC, requirements=SYMMETRIC_SETTINGS, other_misfits=not_alike),
    ("scan_snap.reduced_symmetric", "scan_snap"): Pair(
        SYMMETRIC,
        linear=False,
        requirements={**SYMMETRIC_SETTINGS, "decoder": ("decorrelated",)},
        other_misfits=not_alike,
        example=DECORRELATED_EXAMPLE,
    ),
    ("scan_snap.full", "corpus"): Pair(FULL, requirements=FULL_SETTINGS, other_misfits=not_yz_model, example={"contexts": "infinite"}),
    # the System eliminates attention by an invariant of the flow, which discrete descent does not keep
    ("joma.linear", "joma_gaussian"): Pair(
        (ONE_NODE,),
        lambda rates: rates["w"],
        False,
        {"v": ONE_NODE},
        per_seed=True,
        requirements={**JOMA_SETTINGS, "num_classes": (1,)},
        other_misfits=not_exact,
        example={**JOMA_EXAMPLE, "num_classes": 1},
    ),
    ("joma.linear_multinode", "joma_gaussian"): Pair(
        (same_quantity("V"),),
        lambda rates: rates["w"],
        False,
        {"V": same_quantity("V")},
        per_seed=True,
        requirements=JOMA_SETTINGS,
        other_misfits=not_several_classes,
        example=JOMA_EXAMPLE,
    ),
}


def find_pair(system: str, task: str) -> Pair | None:
    """The Pair of a System and a task, or None if the table has none."""
    return PAIRS.get((system, task))


def flow_misfits(facts: TrainingFacts) -> list[str]:
    """Phrases on why the optimizer does not follow a gradient flow in the limit of small steps; empty if it does."""
    name, decay = facts.optimizer.get("name", "sgd"), facts.optimizer.get("weight_decay", 0.0)
    phrases = [f"the optimizer is {name}, not {' or '.join(FLOWS)}"] * (name not in FLOWS)
    return phrases + [f"weight_decay is {decay:g}, not 0"] * bool(decay)


def misfits(pair: Pair | None, facts: TrainingFacts) -> list[str]:
    """Phrases on why the System does not describe this training, one for each setting; empty if it does.

    pair: of the System and the task; without one only the optimizer is known to matter.
    """
    if pair is None:
        return flow_misfits(facts)
    phrases = [
        f"{name} is {setting_text(facts.config[name])}, not {' or '.join(map(setting_text, right))}"
        for name, right in pair.requirements.items()
        if name in facts.config and facts.config[name] not in right
    ]
    return [*flow_misfits(facts), *phrases, *pair.other_misfits(facts)]


def setting_text(value: Any) -> str:
    """A setting's value as text: `given` for an array, `left out` for None."""
    if isinstance(value, bool):
        return str(value).lower()
    return "given" if isinstance(value, list) else "left out" if value is None else str(value)


def check_described(system: str, facts: TrainingFacts, theory: Mapping[str, Any]) -> None:
    """Raises ParamError, with all settings that do not fit, unless the System describes this training.

    theory {System: parameters}: those that the task describes itself with.
    """
    described = {*theory, *(name for name, task in PAIRS if task == facts.task)}
    if not described and facts.task in TASKS:
        raise ParamError(f"no System describes {facts.task}, whatever its settings are, so that {system!r} cannot be held against it")
    if system in described and (wrong := misfits(find_pair(system, facts.task), facts)):
        raise ParamError(does_not_describe(system, facts.task, wrong))
    if system not in theory:
        described -= {system}
        if not described:
            raise ParamError(f"no System describes {facts.task} with these settings, so that {system!r} cannot be held against it")
        raise ParamError(no_such("System", system, described, f"the theory of {facts.task}"))


def check_flow(system: str, facts: TrainingFacts) -> None:
    """Raises ParamError, with all settings that do not fit, if the optimizer does not follow a gradient flow, as the System does."""
    if flow_misfits(facts):
        raise ParamError(does_not_describe(system, facts.task, misfits(find_pair(system, facts.task), facts)))


def does_not_describe(system: str, task: str, wrong: Sequence[str]) -> str:
    """The sentence on a System that does not describe a training, with phrases on why."""
    return f"{system} does not describe this training of {task}: {'; '.join(wrong)}"
