"""What a training records becomes what a System has: beside loops over classes and tokens."""

import numpy as np
import pytest

from odesim.comparison.pairs import PAIRS, Facts, check_flow, find_pair
from odesim.errors import ParamError
from odesim.reference.settings import check_settings
from odesim.reference.tasks import TASKS, load_task
from odesim.registry import load_model

rng = np.random.default_rng(5)
# three classes, two queries; tokens 0 and 1 common, two of each class's own, not in order
P = np.zeros((3, 8))
P[:, :2] = 0.2
OWN = ((5, 2), (3, 7), (6, 4))
for n, own in enumerate(OWN):
    P[n, list(own)] = 0.3
PSI = np.array([0, 0, 1])
FACTS = Facts("scan_snap", {}, {"P": P, "psi": PSI}, {"name": "sgd", "rates": {"Y": 1.0, "Z": 1.0}})
SEEN = {
    "c": rng.random((2, 4, 3, 8)),
    "Z": rng.random((2, 4, 2, 10)),  # two rows more, of query tokens
    "Y": rng.random((2, 4, 8, 14)),
    "loss_population": rng.random((2, 4)),
    "entropy_distinct": rng.random((2, 4)),
    "V": rng.random((2, 4, 6, 1)),
}


def link(system: str, task: str, name: str):
    """The Link of a pair."""
    return next(link for link in PAIRS[system, task].links if link.name == name)


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


@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_pairs_name_what_there_is(system, task):
    """Every quantity of a pair is the System's, every source is recorded by the task's training, every task is one."""
    model, pair = load_model(system), find_pair(system, task)
    known = {*(str(name) for name in model.states), *model.observables}
    assert task in TASKS and pair is not None
    found = load_task(task)
    experiment = found.make({s.name: s.default for s in found.settings}, seeds=(0,))
    recorded = {o.name for o in experiment.model.observables}
    for one in (*pair.links, *pair.start.values()):
        assert one.name in known and set(one.sources) <= recorded


@pytest.mark.parametrize(("system", "task"), PAIRS)
def test_examples_are_described(system, task):
    """Under the settings of a pair's example the task names the System."""
    found = load_task(task)
    values = check_settings(task, found.settings, PAIRS[system, task].example)
    assert system in found.make(values, seeds=(0,)).theory


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [({"name": "adam"}, "not adam"), ({"name": "adamw"}, "not adamw"), ({"name": "sgd", "weight_decay": 0.1}, "weight decay, .* has 0.1")],
)
def test_other_descents_are_refused(optimizer, said):
    """Optimizers that follow no gradient flow are named."""
    with pytest.raises(ParamError, match=said):
        check_flow(Facts("scan_snap", {}, {}, optimizer))


def test_unequal_classes_are_refused():
    """Classes with one and two tokens of their own have no symmetric System."""
    uneven = np.where(np.arange(8) == 5, 0, P)
    facts = Facts("scan_snap", {}, {"P": uneven, "psi": PSI}, FACTS.optimizer)
    with pytest.raises(ParamError, match="not equally many tokens"):
        link("scan_snap.symmetric", "scan_snap", "c").make(SEEN, facts)
