"""Stored comparisons: all their numbers come out, and a number that does not is said to."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.lab.compare.comparison import Number
from odesim.lab.compare.pairs import find_pair, pairs_of, why_not_described
from odesim.lab.compare.readings import at, metric
from odesim.lab.compare.recipes import RECIPES
from odesim.lab.tasks import TASKS, load_task
from odesim.lab.training.task import check_settings
from tests.support.matrix import slow_but

QUICK = ["reversal_shuffled"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_of_a_pair(name):
    """Its System describes its task under its settings; its readings have names of their own, tolerances and reasons."""
    recipe = RECIPES[name]
    task = load_task(recipe.task)
    made = task.make(
        check_settings(recipe.task, task.settings, recipe.options.get("settings", {})), seeds=tuple(recipe.options.get("seeds", (0,)))
    )
    assert recipe.doc and recipe.model in made.theory and find_pair(recipe.model, recipe.task)
    names = [reading.name for reading in recipe.readings]
    assert len(set(names)) == len(names) > 2
    assert all(reading.tolerance > 0 and reading.reason for reading in recipe.readings)


@pytest.mark.parametrize("name", slow_but(RECIPES, QUICK))
def test_its_numbers_come_out(name):
    """Every number within its tolerance of the recorded one."""
    found = odesim.compare(recipe=name)
    assert [number.name for number in found.numbers if not number.agrees] == [] and found.as_recorded
    assert len(found.numbers) == len(RECIPES[name].readings)


def test_readings():
    """At the nearest time, of one component, in the mean over seeds; a metric of the table; against the arrays."""
    found = odesim.compare("scan_snap.full", task="scan_snap", seeds=(0, 2), steps=8, observables=["loss", "c"])
    for side in ("theory", "training"):
        loss, c = getattr(found, side)["loss"], getattr(found, side)["c"]
        assert at(side, "loss", float(found.t[3]) + 0.1)(found) == pytest.approx(loss[:, 3].mean(), rel=1e-15)
        assert at(side, "c", float(found.t[8]), 1, 29)(found) == pytest.approx(c[:, 8, 1, 29].mean(), rel=1e-15)
    assert metric("c", "sup")(found) == np.abs(found.training["c"].mean(axis=0) - found.theory["c"].mean(axis=0)).max()
    assert metric("loss", "scale")(found) == found.table()[0]["scale"]


def test_a_number_that_is_off():
    """Beyond its tolerance, or not a number, it does not agree."""
    assert Number("a", 1.0, 1.1, 0.11, "").agrees
    assert not Number("a", 1.0, 1.2, 0.11, "").agrees and not Number("a", float("nan"), 1.2, 0.11, "").agrees


GIVEN: dict[str, Any] = {"task": "reversal", "settings": {"eta_Y": 1.0}, "steps": 3, "seeds": (1,), "map": "discrete", "save": 4}
GIVEN |= {"model": "reversal.row", "clock": "limit", "observables": ["loss"], "align": ["a"]}


@pytest.mark.parametrize("name", GIVEN)
def test_a_recipe_has_its_arguments(name):
    """What a recipe fixes is refused by name, before anything is trained."""
    with pytest.raises(ParamError, match=f"^{name}: the recipe 'reversal_shuffled' fixes it already$"):
        odesim.compare(recipe="reversal_shuffled", **{name: GIVEN[name]})


@pytest.mark.parametrize("task", [task for task in TASKS if why_not_described(task)])
def test_a_task_that_no_system_describes(task):
    """As a recipe, and beside a System: the reason, and a recipe that there is; no pair and no theory of the task's."""
    found = load_task(task)
    assert task in TASKS and not pairs_of(task)
    assert not found.make({s.name: s.default for s in found.settings}, seeds=(0,)).theory
    assert sum(recipe in why_not_described(task).split() for recipe in RECIPES) == 1
    for given in ({"recipe": task}, {"model": "hierarchy.multilayer", "task": task}):
        with pytest.raises(ParamError) as error:
            odesim.compare(**given)
        assert "no System describes" in str(error.value) and str(error.value).endswith(why_not_described(task))


def test_wrong_names():
    """A recipe that is not there: all that are, and the nearest; no model at all: what there could be."""
    with pytest.raises(
        ParamError, match="no recipe 'joma_joint_sofmax'; choose from .*, did you mean 'joma_joint_softmax'".replace(",", ".")
    ):
        odesim.compare(recipe="joma_joint_sofmax")
    with pytest.raises(ParamError, match="needs a model and its task or data, two runs, or a recipe"):
        odesim.compare()
