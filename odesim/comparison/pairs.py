"""Which System describes which task, and how what a training records becomes what the System has.

A pair that is not in the table goes by name: what both call the same and have in the same shape.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.errors import ParamError, no_such

FLOWS = ("sgd", "momentum")  # the optimizers whose path a gradient flow describes


@dataclass(frozen=True)
class Facts:
    """What a training was: its task and settings, exact arrays of the task, the optimizer with its learning rates {group: rate}."""

    task: str
    config: Mapping[str, Any]
    exact: Mapping[str, Array]
    optimizer: Mapping[str, Any]

    @property
    def momentum(self) -> float:
        """beta of the updates."""
        return float(self.optimizer.get("momentum", 0.0))


Make = Callable[[Mapping[str, Array], Facts], Array]


@dataclass(frozen=True)
class Link:
    """One quantity of a System, from observables of the training.

    make: {source: (R, T, *shape)} -> (R, T, *shape of the quantity). theory: what is done to the System's own (R, T, *shape); dims:
    axes that are left of it, None for all.
    """

    name: str
    sources: tuple[str, ...]
    make: Make
    theory: Callable[[Array], Array] = lambda values: values
    dims: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Pair:
    """A System and a task. step: the System's time of one iteration of plain descent, from the learning rates.

    linear: the states are linear in the trained parameters, so that descent on them is descent on those. start: {state: initial
    values (R, *shape)} from what was recorded at iteration 0; without it the System's own. each: every seed has parameters of its own.
    check: raises ParamError where the training starts or goes otherwise than the System. example: {setting: value} over the
    task's defaults under which the System describes it.
    """

    links: tuple[Link, ...]
    step: Callable[[Mapping[str, float]], float] = lambda rates: 1.0
    linear: bool = True
    start: Mapping[str, Link] = field(default_factory=dict)
    each: bool = False
    check: Callable[[Facts], None] = lambda facts: None
    example: Mapping[str, Any] = field(default_factory=dict)


def same(name: str, source: str = "") -> Link:
    """The training's observable as it is."""
    source = source or name
    return Link(name, (source,), lambda seen, facts: seen[source])


def collapsed(seen: Mapping[str, Array], facts: Facts) -> Array:
    """Y (R, T, S, K + 1) of Y (R, T, rows, M): the columns of the K next tokens, which are the last, and the mean of the others."""
    K, S = facts.exact["P"].shape
    Y = seen["Y"][:, :, :S]
    if Y.shape[-1] == K + 1:
        return Y
    rest = Y[..., :-K].mean(axis=-1, keepdims=True) if Y.shape[-1] > K else np.zeros((*Y.shape[:-1], 1))
    return np.concatenate([Y[..., -K:], rest], axis=-1)


def own_tokens(facts: Facts) -> Array:
    """Tokens (K, D) that a class alone has, in order. Raises ParamError where classes have not equally many."""
    P = facts.exact["P"]
    own = (P > 0) & ((P > 0).sum(axis=0) == 1)
    if len(set(own.sum(axis=1).tolist())) > 1:
        raise ParamError("the classes of this training have not equally many tokens of their own, so that no symmetric System fits")
    return np.stack([np.flatnonzero(row) for row in own])


def common_tokens(facts: Facts) -> Array:
    """Tokens (n,) of more than one class."""
    return np.flatnonzero((facts.exact["P"] > 0).sum(axis=0) > 1)


def class_mean(source: str, common: bool) -> Make:
    """Mean over classes of c (R, T, K, S), or of Z (R, T, Q, S) at their queries, at some tokens.

    common: at those of more than one class, in the mean (R, T, 1), not at each class's own (R, T, D).
    """

    def make(seen: Mapping[str, Array], facts: Facts) -> Array:
        values = seen[source]
        if source == "Z":
            values = values[:, :, np.asarray(facts.exact["psi"], int)]  # (R, T, K, S)
        if common:
            return values[..., common_tokens(facts)].mean(axis=(-2, -1))[..., None]
        tokens = own_tokens(facts)
        return values[:, :, np.arange(len(tokens))[:, None], tokens].mean(axis=2)

    return make


def from_zero(facts: Facts) -> None:
    """Raises ParamError unless Y and Z start at 0, as the Systems do."""
    if facts.config.get("init", "zero") != "zero":
        raise ParamError(f"the Systems of scan_snap start from 0, this training with init = {facts.config['init']}")


LOSS = same("loss", "loss_population")
SYMMETRIC = (
    LOSS,
    Link("c", ("c",), class_mean("c", common=False)),
    Link("cc", ("c",), class_mean("c", common=True)),
    Link("z", ("Z",), class_mean("Z", common=False)),
    Link("zc", ("Z",), class_mean("Z", common=True)),
)
FULL = (
    LOSS,
    same("c"),
    same("entropy"),
    Link("entropy_distinct", ("entropy_distinct",), lambda seen, _: seen["entropy_distinct"], lambda x: x.mean(axis=-1), ()),
    Link("Y", ("Y",), collapsed),
    Link("Z", ("Z",), lambda seen, facts: seen["Z"][..., : facts.exact["P"].shape[1]]),
)
EXACT_JOMA: Mapping[str, Any] = {"attention": "exp", "signal": "fixed", "temperature": 1}
ONE_NODE = Link("v", ("V",), lambda seen, _: seen["V"][..., 0])

PAIRS: Mapping[tuple[str, str], Pair] = {
    ("scan_snap.full", "scan_snap"): Pair(FULL, check=from_zero),
    ("scan_snap.symmetric", "scan_snap"): Pair(SYMMETRIC, check=from_zero),
    ("scan_snap.reduced_symmetric", "scan_snap"): Pair(SYMMETRIC, linear=False, check=from_zero),
    ("scan_snap.full", "corpus"): Pair(FULL, example={"contexts": "infinite"}),
    # attention is integrated out by an invariant of the flow, which descent does not keep
    ("joma.linear", "joma_gaussian"): Pair(
        (ONE_NODE,), lambda rates: rates["w"], False, {"v": ONE_NODE}, each=True, example={**EXACT_JOMA, "num_classes": 1}
    ),
    ("joma.linear_multinode", "joma_gaussian"): Pair(
        (same("V"),), lambda rates: rates["w"], False, {"V": same("V")}, each=True, example=EXACT_JOMA
    ),
}


def find_pair(system: str, task: str) -> Pair | None:
    """The pair of that System and task; None where they have to go by name."""
    return PAIRS.get((system, task))


def check_described(system: str, task: str, theory: Mapping[str, Any]) -> None:
    """Raises ParamError unless this training's task says which parameters of the System describe it."""
    if system not in theory:
        pair = find_pair(system, task)
        if pair:
            where = ", ".join(f"{name}={value}" for name, value in pair.example.items()) or "the default ones"
            raise ParamError(f"{system} does not describe {task} with these settings; it does with {where}")
        if not theory:
            raise ParamError(f"no System describes {task} with these settings, so that {system!r} cannot be held against it")
        raise ParamError(no_such("System", system, theory, f"the theory of {task} with these settings"))


def check_flow(facts: Facts) -> None:
    """Raises ParamError where the optimizer follows no gradient flow in the limit of small steps."""
    name, decay = facts.optimizer.get("name", "sgd"), facts.optimizer.get("weight_decay", 0.0)
    if name not in FLOWS:
        raise ParamError(f"a gradient flow describes the optimizers {' and '.join(FLOWS)}, not {name}")
    if decay:
        raise ParamError(f"the Systems have no weight decay, and this training has {decay:g}")
