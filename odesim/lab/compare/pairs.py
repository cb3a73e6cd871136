"""The table of Systems and the tasks that they describe.

A System and a task that are not in the table are compared by names and shapes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.base.errors import ParamError, no_such
from odesim.lab.compare.links import (
    ANY_START_SETTINGS,
    DECORRELATED_EXAMPLE,
    FULL,
    FULL_SETTINGS,
    NUMBERS,
    SAME,
    STARTS,
    SYMMETRIC,
    SYMMETRIC_SETTINGS,
    SYMMETRIC_START,
    TOPIC_SETTINGS,
    WEIGHTS,
    Link,
    Pair,
    TrainingFacts,
    no_shared_token,
    not_alike,
    not_yz_model,
    same_quantity,
    starts_at_random,
    time_of_matrices,
)
from odesim.lab.tasks import TASKS

FLOWS = ("sgd", "momentum")  # optimizers that follow a gradient flow
JOMA_EXAMPLE: Mapping[str, Any] = {"attention": "exp", "signal": "fixed", "temperature": 1}
ONE_NODE = Link("v", ("V",), lambda seen, _: seen["V"][..., 0])

JOMA_SETTINGS: Mapping[str, tuple[Any, ...]] = {"attention": ("exp",), "phi": ("identity",), "signal": ("fixed",), "cosine": (0,)}

JOINT_STATES = (same_quantity("V"), same_quantity("Xi"), same_quantity("Z", "z"))
JOINT = (same_quantity("loss"), same_quantity("entropy"), *JOINT_STATES, same_quantity("attention"))

LAYERS = tuple(map(same_quantity, ("V1", "V2", "U", "xi1", "xi2")))

OVERLAPS = tuple(map(same_quantity, ("e_g", "Q", "R", "v")))


def not_exact(facts: TrainingFacts) -> list[str]:
    """Phrases on why V alone does not determine the flow of a joma_gaussian training: ratio of the rates, momentum."""
    rates, T = facts.optimizer["rates"], facts.config["temperature"]
    ratio = rates["z"] / rates["w"]
    found = [] if np.isclose(ratio, T * T, rtol=1e-12) else [f"eta_z / eta_w is {ratio:g}, not temperature^2 = {T * T:g}"]
    return found + [f"momentum is {facts.momentum:g}, not 0"] * bool(facts.momentum)


def not_several_classes(facts: TrainingFacts) -> list[str]:
    """The phrases of not_exact(), and one if there is a single class."""
    return not_exact(facts) + ["num_classes is 1, not more"] * (facts.config["num_classes"] == 1)


def time_of_weights(facts: TrainingFacts) -> float:
    """The time of joma.linear of one iteration: the learning rate of the weights."""
    return float(facts.optimizer["rates"]["w"])


def unequal_rates(facts: TrainingFacts) -> list[str]:
    """A phrase where weights and logits of joma_regression do not move alike."""
    w, z = (facts.optimizer["rates"][name] for name in "wz")
    return [] if w == z else [f"eta_z is {z:g}, not eta = {w:g}"]


PAIRS: Mapping[tuple[str, str], Pair] = {
    ("scan_snap.full", "scan_snap"): Pair(
        FULL, start=STARTS, own_start=starts_at_random, requirements=ANY_START_SETTINGS, other_misfits=no_shared_token
    ),
    ("scan_snap.full_decorrelated", "scan_snap"): Pair(
        FULL, requirements={**FULL_SETTINGS, "decoder": ("decorrelated",)}, example={"decoder": "decorrelated"}
    ),
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
        time_of_weights,
        False,
        {"v": ONE_NODE},
        per_seed=True,
        requirements={**JOMA_SETTINGS, "num_classes": (1,)},
        other_misfits=not_exact,
        example={**JOMA_EXAMPLE, "num_classes": 1},
    ),
    ("joma.linear_multinode", "joma_gaussian"): Pair(
        (same_quantity("V"),),
        time_of_weights,
        False,
        {"V": same_quantity("V")},
        per_seed=True,
        requirements=JOMA_SETTINGS,
        other_misfits=not_several_classes,
        example=JOMA_EXAMPLE,
    ),
    # the System eliminates z by an invariant of the flow
    ("joma.self_consistent", "joma_regression"): Pair(
        (same_quantity("v"), same_quantity("loss", "loss_population"), same_quantity("entropy")),
        time_of_weights,
        False,
        requirements={"momentum": (0,)},
        other_misfits=unequal_rates,
    ),
    # as above: the System has the logits of the flow, half the squared weights
    ("hierarchy.multilayer", "hierarchy_layers"): Pair(
        (same_quantity("loss"), *LAYERS),
        lambda facts: float(facts.config["eta"]),
        False,
        {link.name: link for link in LAYERS},
        per_seed=True,
        requirements={"phi": ("identity",), "momentum": (0,)},
        example={"K1": 4, "K2": 3, "num_classes": 5, "n0": 4, "n1": 5, "vocabulary": 9},
    ),
    ("reversal.row", "reversal"): Pair(
        (
            Link(
                "loss", ("loss_population",), lambda seen, _: seen["loss_population"], doc="mean over trained facts beside that of one row"
            ),
            Link("p_target", ("p_target",), lambda seen, _: seen["p_target"], doc="mean over trained facts beside that of one row"),
            Link("v", ("v",), lambda seen, _: seen["v"], doc="mean over trained facts beside that of one row"),
        ),
        linear=False,  # a step of descent moves one row, by N times the mean
        requirements={"data": ("reversals",), "momentum": (0,)},
    ),
    ("reversal.full", "reversal"): Pair(
        (same_quantity("loss", "loss_population"), same_quantity("p"), same_quantity("Y")),
        linear=False,
        start={"Y": same_quantity("Y")},
        requirements={"momentum": (0,)},
    ),
    **{
        (f"joma.joint_{attention}", "joma_gaussian"): Pair(
            JOINT,
            time_of_weights,
            start={link.name: link for link in JOINT_STATES},
            per_seed=True,
            requirements={"attention": (attention,), "phi": ("identity",), "signal": ("ce",), "cosine": (0,)},
            example={"attention": attention},
        )
        for attention in ("exp", "linear", "softmax")
    },
    # each seed has its own start: exact overlaps differ by rounding, normal weights by chance
    ("classics.committee", "committee"): Pair(
        OVERLAPS,
        lambda facts: 1 / facts.config["N"],
        False,
        {link.name: link for link in OVERLAPS if link.name != "e_g"},
        requirements={"activation": ("erf",), "batch": (1,), "momentum": (0,)},
    ),
    ("topics.full", "topics"): Pair(
        SAME, time_of_matrices, start={link.name: link for link in SAME if link.name in WEIGHTS}, requirements=TOPIC_SETTINGS
    ),
    ("topics.reduced", "topics"): Pair(
        NUMBERS,
        time_of_matrices,
        start={link.name: link for link in NUMBERS},
        requirements=SYMMETRIC_START,
        example={"init": "symmetric"},
    ),
}


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    **{word: {"phi": word} for word in ("relu", "softplus", "square")},
    **{word: {"signal": word} for word in ("mse", "fixed")},
}
"""{last word of the name of a variant, as in joma.joint_exp.relu: settings that it describes in the place of those of its model}."""

INSTEAD: Mapping[str, str] = {
    "hierarchy_dag": "its transformer has keys, queries and layer norms, which no System keeps; "
    "hierarchy_layers (task and recipe) has the same classes, read by the nodes of hierarchy.multilayer",
}
"""{task: why no System describes it, and what can be compared instead}."""


def find_pair(system: str, task: str) -> Pair | None:
    """The Pair of a System and a task, or None if the table has none. A variant has that of its model, but for its own settings."""
    model, _, word = system.rpartition(".")
    base, own = PAIRS.get((model, task)), VARIANTS.get(word)
    if (system, task) in PAIRS or base is None or own is None:
        return PAIRS.get((system, task))
    own_settings = {name: (value,) for name, value in own.items()}
    return replace(base, requirements={**base.requirements, **own_settings}, example={**base.example, **own})


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
        instead = f": {INSTEAD[facts.task]}" if facts.task in INSTEAD else ""
        raise ParamError(
            f"no System describes {facts.task}, whatever its settings are, so that {system!r} cannot be compared with it{instead}"
        )
    pair = find_pair(system, facts.task)
    if (system in described or pair) and (wrong := misfits(pair, facts)):
        raise ParamError(does_not_describe(system, facts.task, wrong))
    if system not in theory:
        described -= {system}
        if not described:
            raise ParamError(f"no System describes {facts.task} with these settings, so that {system!r} cannot be compared with it")
        raise ParamError(no_such("System", system, described, f"the theory of {facts.task}"))


def check_flow(system: str, facts: TrainingFacts) -> None:
    """Raises ParamError, with all settings that do not fit, if the optimizer does not follow a gradient flow, as the System does."""
    if flow_misfits(facts):
        raise ParamError(does_not_describe(system, facts.task, misfits(find_pair(system, facts.task), facts)))


def does_not_describe(system: str, task: str, wrong: Sequence[str]) -> str:
    """The sentence on a System that does not describe a training, with phrases on why."""
    return f"{system} does not describe this training of {task}: {'; '.join(wrong)}"
