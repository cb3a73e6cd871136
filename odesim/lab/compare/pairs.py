"""Whether a System describes a training: by the Pair that the task's file has for it, its settings and its optimizer.

A System and a task without a Pair are compared by names and shapes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from odesim.base.errors import ParamError, no_such
from odesim.lab.tasks import TASKS, load_task
from odesim.lab.training.task import Pair, TrainingFacts, misfits, optimizer_misfits, pair_in


def pairs_of(task: str) -> Mapping[str, Pair]:
    """{System: Pair} of a task of this package; empty for a user's own."""
    return getattr(load_task(task), "described_by", {}) if task in TASKS else {}


def why_not_described(task: str) -> str:
    """Why no System describes a task, and what can be compared instead; empty where one does."""
    return str(getattr(load_task(task), "not_described", "")) if task in TASKS else ""


def find_pair(system: str, task: str) -> Pair | None:
    """The Pair of a System and a task, or None where the task has none."""
    return pair_in(pairs_of(task), system)


def check_described(system: str, facts: TrainingFacts, theory: Mapping[str, Any]) -> None:
    """Raises ParamError, with all settings that do not fit, unless the System describes this training.

    theory {System: parameters}: those that the task describes itself with.
    """
    described = {*theory, *pairs_of(facts.task)}
    if not described and facts.task in TASKS:
        sentence = f"no System describes {facts.task}, whatever its settings are, so that {system!r} cannot be compared with it"
        raise ParamError(": ".join(filter(None, (sentence, why_not_described(facts.task)))))
    pair = find_pair(system, facts.task)
    if (system in described or pair) and (wrong := misfits(pair, facts)):
        raise ParamError(does_not_describe(system, facts.task, wrong))
    if system not in theory:
        described -= {system}
        if not described:
            raise ParamError(f"no System describes {facts.task} with these settings, so that {system!r} cannot be compared with it")
        raise ParamError(no_such("model", system, described, f"the theory of {facts.task}"))


def check_own(system: str, facts: TrainingFacts, theory: Mapping[str, Any], pair: Pair) -> None:
    """Raises ParamError unless the System describes this training of a task of one's own: of any, where its theory names none."""
    if theory and system not in theory:
        raise ParamError(no_such("model", system, theory, f"what describes {facts.task}"))
    if not pair.links:
        raise ParamError(f"no observable in common: {system} has no loss, and nothing else that {facts.task} records")
    if wrong := misfits(pair, facts):
        raise ParamError(does_not_describe(system, facts.task, wrong))


def check_optimizer_fits(system: str, facts: TrainingFacts) -> None:
    """Raises ParamError, with all settings that do not fit, if the optimizer is not one that the System describes."""
    pair = find_pair(system, facts.task)
    if optimizer_misfits(pair, facts):
        raise ParamError(does_not_describe(system, facts.task, misfits(pair, facts)))


def does_not_describe(system: str, task: str, wrong: Sequence[str]) -> str:
    """The sentence on a System that does not describe a training, with phrases on why."""
    return f"{system} does not describe this training of {task}: {'; '.join(wrong)}"
