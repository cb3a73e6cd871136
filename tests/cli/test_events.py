"""Events that are added to a run on the command line: stored, computed again, gone on with."""

import json

import pytest

from tests.support.metadata import edit

EVENTS = ("far: v[0] - .5; direction up", "full: sum(v) - 12; terminal", "gaps: gap[l] - 1")
WORDS = [word for text in EVENTS for word in ("--event", text)]


def test_a_stored_run_keeps_its_events(folder, odesim):
    """rerun reads them by the same grammar and finds the same bits; a text that is none is a sentence; nothing is executed."""
    words = [word for text in EVENTS for word in ("--event", text)]
    assert odesim("integrate", "joma.nonlinear", *words, "--out", "a.zarr", "--quiet", "--backend", "numpy").exit_code == 0
    made = odesim("rerun", "a.zarr")
    assert made.exit_code == 0 and "every bit is the same" in made.stdout, made
    edit(folder / "a.zarr" / "zarr.json", lambda said: json.loads(json.dumps(said).replace("far: v[0] - .5", "far: w[0] - .5")))
    damaged = odesim("rerun", "a.zarr")
    assert damaged.exit_code == 2 and "character 6: no name 'w'" in damaged.stderr and damaged.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_ensemble_keeps_its_events(folder, odesim):
    """resume and rerun take them from the run; a shard with other events is another ensemble."""
    grid = ("ensemble", "joma.nonlinear", "--method", "euler", "--step", "0.01", "--grid", "v=0.05,0.1,0.2", "--out", "b.zarr", "--quiet")
    assert odesim(*grid, *WORDS, "--shard", "1/2").exit_code == 0
    for other in ((), WORDS[:2]):
        refused = odesim(*grid, *other, "--shard", "2/2")
        assert refused.exit_code == 2 and "its added events differ" in refused.stderr
    assert odesim(*grid, *WORDS, "--shard", "2/2").exit_code == 0
    done = odesim("resume", "b.zarr", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["done"] == 3
    assert "every bit is the same" in odesim("rerun", "b.zarr").stdout


@pytest.mark.parametrize("command", ["integrate", "ensemble"])
def test_a_mistake_writes_nothing(command, folder, odesim):
    """One sentence with the place, exit code 2."""
    more = ("--grid", "v=1,2") if command == "ensemble" else ()
    wrong = odesim(command, "joma.nonlinear", *more, "--out", "c.zarr", "--event", "far: v[0] -")
    assert wrong.exit_code == 2 and not list(folder.iterdir())
    assert wrong.stderr == "odesim: event 'far: v[0] -', character 12: a number, a name or a bracket is missing\n"


def test_added_events_are_among_the_results(folder, odesim):
    """Same keys as the model's own."""
    found = json.loads(odesim("integrate", "joma.nonlinear", *WORDS, "--backend", "numpy", "--json").stdout)
    assert list(found["events"]) == ["half way", "far", "full", "gaps"] and found["status"] == "event"
    assert all(occurrence.keys() == {"t", "index"} for list_ in found["events"].values() for occurrence in list_)


UNDEFINED = {"never": "sqrt(-1 - v[0])", "its components": "log(-v[l])"}
DEFINED = {"none": "v[0] + 1", "from some time on": "log(v[0] - 1)", "of one component": "sqrt(v[l] - v[1])"}


def test_an_event_that_is_never_a_number_is_named(folder, odesim):
    """One that is NaN in all components at all saved times cannot happen: a sentence, also with the stored run, which comes again."""
    texts = [word for name, e in {**UNDEFINED, **DEFINED}.items() for word in ("--event", f"{name}: {e}")]
    made = odesim(
        "integrate", "joma.nonlinear", "--set", "mu=2,1,0.5", *texts, "--backend", "numpy", "--save", "9", "--out", "d.zarr", "--quiet"
    )
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [f"odesim: the event {name!r} is a number at no saved time: it cannot happen" for name in UNDEFINED]
    assert "every bit is the same" in odesim("rerun", "d.zarr").stdout
