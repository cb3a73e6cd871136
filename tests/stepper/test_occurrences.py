"""Events as arrays read as the list of dictionaries that they stand for."""

from typing import Any

import numpy as np
import pytest

from odesim.stepper.occurrences import Events, components_since

TABLE: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "whole": [{"t": 0.5, "index": None}, {"t": 1.5, "index": None}],
    "vector": [{"t": 0.5, "index": (3,)}, {"t": 0.5, "index": (1,)}],
    "matrix": [{"t": 0.25, "index": (3, 0)}, {"t": 0.5, "index": (1, 2)}, {"t": 0.75, "index": (0, 0)}],
}


@pytest.mark.parametrize("name", TABLE)
def test_events_are_their_list(name):
    """Length, elements, slices, iteration and equality in both directions, in plain Python numbers."""
    found, listed = Events.of(TABLE[name]), TABLE[name]
    assert found == listed and listed == found and list(found) == listed and len(found) == len(listed)
    assert found[1:] == listed[1:] and [found[k] for k in range(-len(listed), 0)] == listed
    assert found != [*listed, {"t": 9.0, "index": None}]
    assert all(type(e["t"]) is float and (e["index"] is None or all(type(i) is int for i in e["index"])) for e in found)
    assert Events.of(found) is found and repr(found) == repr(listed)


def test_many_events_have_a_short_name():
    """The repr of a million is no megabyte of text."""
    assert repr(Events(np.arange(10.0))) == "<10 events, t = 0 to 9>"


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("since", [0.0, 0.25, 0.5, 0.6, 0.75, 9.0])
def test_components_since_a_time(name, since):
    """The numbers, in C order, of the components whose events are at this time or later; of an event without axes one for all of them."""
    shape = (4, 3)[: len(TABLE[name][0]["index"] or ())] if TABLE[name] else ()
    late = [e["index"] for e in TABLE[name] if e["t"] >= since]
    found = components_since(Events.of(TABLE[name]), shape, since)
    assert found == ([0] * bool(late) if not shape else [place[0] * 3 + place[1] if len(place) == 2 else place[0] for place in late])
