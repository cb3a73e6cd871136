"""What a training records becomes what a System has: beside loops over classes and tokens."""

import shlex
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.cli.tables import GLUE
from odesim.inputs.registry import load_model
from odesim.lab.compare.pairs import check_described, check_optimizer_fits, find_pair, misfits, pairs_of
from odesim.lab.compare.sides import training_label
from odesim.lab.experiment import make_experiment
from odesim.lab.options import read_settings
from odesim.lab.output import setting_option
from odesim.lab.tasks import TASKS, load_task
from odesim.lab.training.optimizers import check_optimizer
from odesim.lab.training.task import FLOWS, Setting, TrainingFacts, check_settings

rng = np.random.default_rng(5)
# three classes, two queries; tokens 0 and 1 common, two of each class's own, not in order
P = np.zeros((3, 8))
P[:, :2] = 0.2
OWN = ((5, 2), (3, 7), (6, 4))
for n, own in enumerate(OWN):
    P[n, list(own)] = 0.3
PSI = np.array([0, 0, 1])
FACTS = TrainingFacts("scan_snap", {}, {"P": P, "psi": PSI}, {"name": "sgd", "rates": {"Y": 1.0, "Z": 1.0}})
SEEN = {
    "c": rng.random((2, 4, 3, 8)),
    "Z": rng.random((2, 4, 2, 10)),  # two rows more, of query tokens
    "Y": rng.random((2, 4, 8, 14)),
    "loss_population": rng.random((2, 4)),
    "entropy_distinct": rng.random((2, 4)),
    "V": rng.random((2, 4, 6, 1)),
}

PAIRS = [(system, task) for task in TASKS for system in pairs_of(task)]


def link(system: str, task: str, name: str):
    """The Link of a pair."""
    return next(link for link in pairs_of(task)[system].links if link.name == name)


def by_hand(name: str) -> np.ndarray:
    """The System's quantity at seed 1, time 2, by loops."""
    c, Z, Y = (SEEN[source][1, 2] for source in ("c", "Z", "Y"))
    z = Z[PSI]
    if name in ("c", "z"):
        x = c if name == "c" else z
        return np.mean([[x[n, t] for t in sorted(OWN[n])] for n in range(3)], axis=0)
    if name in ("cc", "zc"):
        x = c if name == "cc" else z
        return np.array([np.mean([x[n, t] for n in range(3) for t in (0, 1)])])
    if name == "Y":
        return np.column_stack([Y[:, 11], Y[:, 12], Y[:, 13], Y[:, :11].mean(axis=1)])
    return Z[:, :8]


@pytest.mark.parametrize(
    ("system", "name"),
    [("scan_snap.symmetric", name) for name in ("c", "cc", "z", "zc")]
    + [("scan_snap.reduced_symmetric", name) for name in ("c", "cc", "z", "zc")]
    + [("scan_snap.full", name) for name in ("Y", "Z")],
)
def test_what_is_made_of_a_training(system, name):
    """Class means over own and common tokens, and the collapse of equal columns, as loops have them; rounding 1e-12."""
    found = link(system, "scan_snap", name).make(SEEN, FACTS)
    assert found.shape[:2] == (2, 4) and found[1, 2] == pytest.approx(by_hand(name), rel=1e-12)


def test_a_collapsed_decoder_stays():
    """Y (S, K + 1) of infinite contexts is the System's already."""
    Y = rng.random((1, 2, 8, 4))
    assert np.array_equal(link("scan_snap.full", "scan_snap", "Y").make({"Y": Y}, FACTS), Y)


@pytest.mark.first(14)
@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_pairs_name_what_there_is(system, task):
    """Every quantity of a pair is the System's, every source is recorded by the task's training, every task is one."""
    model, pair = load_model(system), find_pair(system, task)
    known = {*(str(name) for name in model.states), *model.observables}
    assert task in TASKS and pair is not None
    found = load_task(task)
    experiment = found.make({s.name: s.default for s in found.settings} | dict(pair.example), seeds=(0,))
    recorded = {"loss", *(o.name for o in experiment.model.observables)}
    for one in (*pair.links, *pair.start.values()):
        assert one.quantity in known and set(one.sources) <= recorded


@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_examples_are_described(system, task):
    """Under the settings of a pair's example the task names the System."""
    found = load_task(task)
    values = check_settings(task, found.settings, pairs_of(task)[system].example)
    assert system in found.make(values, seeds=(0,)).theory


# after four of e, f, g comes "on land", after four of b, c, d "on sea"
TEXT = " ".join(f"{' '.join(rng.choice(list(side), 4))} on {'sea' if side == 'bcd' else 'land'}" for side in ("efg", "bcd") * 30)
BASE: dict[str, dict[str, Any]] = {"corpus": {"text": TEXT, "vocabulary": 10, "num_next": 2, "length": 5}, "committee": {"N": 20}}
# tasks with little that could be otherwise
FEW_SETTINGS = (
    *("reversal", "joma_regression", "hierarchy_layers", "in_context", "power_law"),
    *("selection", "next_token", "single_location", "binary_chain", "quadratic", "valley", "tokens"),
)
OTHER: dict[str, tuple[Any, ...]] = {
    "c": (),
    "P": (FACTS.exact["P"].tolist(),),
    "text": (),
    "q": (),
    "p": (),
    "s": (),
    "psi": (),
    "M": (),
    "A": (),
    "Q": (),
    "R": (),
    **dict.fromkeys(("v", "k", "U", "lam", "target", "X", "z", "y", "m", "H", "b"), ()),
    "W": ([[1.0, 0.5], [0.2, 0.1]],),
}


def others(setting: Setting) -> tuple[Any, ...]:
    """Values of a setting other than its default."""
    if setting.name in OTHER:
        return OTHER[setting.name]
    if isinstance(setting.default, bool):
        return (not setting.default,)
    if isinstance(setting.default, str):
        return setting.choices
    low = 0 if setting.low is None else setting.low
    return (low, setting.default / 2, setting.default + 1) if isinstance(setting.default, float) else (low, setting.default + 1)


@pytest.mark.first(len(PAIRS))
@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_examples_can_be_pasted(system, task):
    """What --settings prints is what a shell and the command line read as the example."""
    example, settings = pairs_of(task)[system].example, load_task(task).settings
    words = [shlex.split(setting_option(name, value).replace(GLUE, " ")) for name, value in example.items()]
    assert all(flag == "--set" for flag, _ in words)
    np.testing.assert_equal(read_settings(task, settings, [text for _, text in words]), dict(example))


@pytest.mark.first(len(PAIRS))
@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_a_theory_follows_rates(system, task):
    """Rates that a setting sets are the same training when --lr sets them: the theory has their parameters, or they are refused."""
    found = load_task(task)
    example = {**BASE.get(task, {}), **pairs_of(task)[system].example}
    usual = make_experiment(found, example, (0,))
    for setting in found.settings:
        if not isinstance(setting.default, float):
            continue
        try:
            by_setting = make_experiment(found, {**example, setting.name: 0.75 * setting.default}, (0,))
        except ParamError:
            continue
        rates = {group: rate for group, rate in by_setting.optimizer.rates.items() if rate != usual.optimizer.rates[group]}
        if rates and system in by_setting.theory:
            try:
                by_rates = make_experiment(found, example, (0,), rates=rates)
            except ParamError as refusal:
                assert "learning rate" in str(refusal)
                continue
            assert by_rates.optimizer == by_setting.optimizer
            np.testing.assert_equal(dict(by_rates.theory[system]), dict(by_setting.theory[system]))


@pytest.mark.first(11)
@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_what_fits_is_what_the_task_says(system, task):
    """One setting of a pair's example changed at a time: the task names the System where nothing is said not to fit, and only there."""
    found, pair = load_task(task), pairs_of(task)[system]
    fits: set[str] = set()
    refused: set[str] = set()
    for setting in found.settings:
        for value in others(setting):
            given = {**BASE.get(task, {}), **pair.example, setting.name: value}
            try:
                made = found.make(check_settings(task, found.settings, given), seeds=(0,))
                check_optimizer(made.optimizer)
            except ParamError:
                continue
            spec = asdict(made.optimizer)
            wrong = misfits(pair, TrainingFacts(task, made.config, made.exact, spec, made.model.name))
            if spec["name"] in (pair.optimizers or FLOWS):
                assert (system in made.theory) is (not wrong), (setting.name, value, wrong)
                assert all(setting.name.split("_")[0] in text for text in wrong)
                (refused if wrong else fits).add(setting.name)
    assert len(fits) > 3 and len(refused) > (0 if task in FEW_SETTINGS else 1)


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ({"name": "adam"}, "the optimizer is adam, not sgd or momentum$"),
        ({"name": "adamw", "weight_decay": 0.1}, "the optimizer is adamw, not sgd or momentum; weight_decay is 0.1, not 0$"),
        ({"name": "sgd", "weight_decay": 0.1}, "weight_decay is 0.1, not 0$"),
    ],
)
def test_other_descents_are_refused(optimizer, said):
    """Optimizers that follow no gradient flow are named, whatever the System."""
    for system, task in (("scan_snap.full", "scan_snap"), ("my.flow", "my_task")):
        with pytest.raises(ParamError, match=f"^{system} does not describe this training of {task}: .*{said}"):
            check_optimizer_fits(system, TrainingFacts(task, {}, {}, optimizer))


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_all_that_does_not_fit_is_one_sentence(system, task, optimizer):
    """A training whose every required setting is another one: the sentence names each of them, and the optimizer."""
    pair = pairs_of(task)[system]
    right = pair.optimizers or FLOWS
    found = load_task(task)
    made = found.make(check_settings(task, found.settings, {**BASE.get(task, {}), **pair.example}), seeds=(0,))
    config = {**made.config, **dict.fromkeys(pair.requirements, "another")}
    facts = TrainingFacts(task, config, made.exact, {**asdict(made.optimizer), "name": optimizer}, made.model.name)
    if not pair.requirements and optimizer in right:  # nothing of it is another
        check_described(system, facts, made.theory)
        return
    with pytest.raises(ParamError) as error:
        check_described(system, facts, made.theory)
    for name in pair.requirements:
        assert f"{name} is another, not " in str(error.value)
    assert (f"the optimizer is {optimizer}, not {' or '.join(right)}" in str(error.value)) == (optimizer not in right)


def test_unequal_classes_are_refused():
    """Classes with one and two tokens of their own have no symmetric System."""
    uneven = np.where(np.arange(8) == 5, 0, P)
    facts = TrainingFacts("scan_snap", {}, {"P": uneven, "psi": PSI}, FACTS.optimizer)
    with pytest.raises(ParamError, match="not equally many tokens"):
        link("scan_snap.symmetric", "scan_snap", "c").make(SEEN, facts)


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ({"name": "sgd"}, "sgd"),
        ({"name": "sgd", "momentum": 0.9}, "sgd with momentum 0.9"),
        ({"name": "momentum", "momentum": 0.9}, "momentum 0.9"),
        ({"name": "adam", "momentum": 0.9}, "adam"),
        ({}, ""),
    ],
)
def test_the_optimizer_of_a_label(optimizer, said):
    """A momentum is named once."""
    trained = SimpleNamespace(task="toy", model="net", attrs={"optimizer": optimizer})
    assert training_label(cast(Any, trained), 2) == f"toy (net), 2 seeds, {said}".rstrip(", ")
