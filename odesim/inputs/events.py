"""Events that people add to a run: "NAME: EXPRESSION; terminal; direction up", read by our own grammar."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from odesim.base.errors import ParamError, SpecError, StoreError, counted, nearest
from odesim.base.memo import IdentityKey, Memo
from odesim.inputs.expressions import Names, parse_expression
from odesim.inputs.grammar import show_text
from odesim.symbolic.indices import time
from odesim.symbolic.parts import Event
from odesim.symbolic.system import System

FORM = "write NAME: EXPRESSION, as in 'far: v[0] - 2; terminal; direction up'"
WORDS: dict[str, dict[str, Any]] = {
    "terminal": {"terminal": True},
    "direction up": {"direction": 1},
    "direction down": {"direction": -1},
    "at start": {"at_start": True},
}
MOST = 100
ADDED, DOCS = "added_events", "event_docs"
"""Attributes of a run: the texts of its own events, and what each event means."""
_MADE: Memo[System] = Memo(32)  # what is compiled is remembered by the System


def with_events(system: System, texts: str | Iterable[str]) -> System:
    """The System with an event for each text after its own. Raises ParamError with the place of a mistake."""
    added = tuple([texts] if isinstance(texts, str) else texts)
    for text in added:
        if not isinstance(text, str):
            raise ParamError(f"events takes texts: {FORM}, not {text!r}")
    if len(added) > MOST:
        raise ParamError(f"{counted(len(added), 'event')} are added, and {MOST} are the most")
    return _MADE((IdentityKey(system), added), lambda: _added(system, added)) if added else system


REST_BY_RTOL = 100.0
"""A run is at rest where speed() is below so many relative tolerances: an explicit method leaves errors of a few, whose decay moves it."""


def events_until_rest(system: System, texts: str | Iterable[str], until_rest: bool, rtol: float) -> str | Iterable[str]:
    """The texts, with the event that ends a run where it comes to rest if it is to do so."""
    if not until_rest:
        return texts
    rest = f"at rest: speed() - {REST_BY_RTOL * rtol:g}; terminal; direction down{'' if system.discrete else '; at start'}"
    return (*([texts] if isinstance(texts, str) else texts), rest)


def event_attributes(system: System, texts: str | Iterable[str]) -> dict[str, Any]:
    """The attributes ADDED and DOCS of a run of this System, without those that are empty."""
    added, docs = [texts] if isinstance(texts, str) else list(texts), {e.name: e.doc for e in system.events if e.doc}
    return ({ADDED: added} if added else {}) | ({DOCS: docs} if docs else {})


def with_stored_events(path: Path, system: System, attributes: Mapping[str, Any]) -> System:
    """The System with the events that were added to the run at path. Raises StoreError where a text is none."""
    try:
        return with_events(system, attributes.get(ADDED, ()))
    except ParamError as error:
        raise StoreError(f"{path} is damaged, or its model is another one: {error}") from None


def _added(system: System, texts: tuple[str, ...]) -> System:
    names = Names.of(system)
    for text in texts:
        event = parse_event(text, names)
        if any(event.name == other.name for other in system.events):
            raise ParamError(f"event {show_text(text)}: {system.name} has an event {event.name!r} already; give it another name")
        if event.name in names.things:
            raise ParamError(
                f"event {show_text(text)}: {system.name} has something else called {event.name!r}; give the event another name"
            )
        try:
            system = replace(system, events=(*system.events, event))
        except SpecError as error:
            raise ParamError(f"event {show_text(text)}: {error}") from None
    return system


def parse_event(text: str, names: Names) -> Event:
    """The Event in text. Raises ParamError."""

    def fail(at: int, sentence: str) -> NoReturn:
        raise ParamError(f"event {show_text(text)}, character {at + 1}: {sentence}")

    head, *options = text.split(";")
    name, colon, _ = head.partition(":")
    if not colon:
        fail(len(head), f"a colon is missing after the name: {FORM}")
    if not name.strip():
        fail(0, f"the name is missing: {FORM}")
    e = parse_expression(head, len(name) + 1, names, fail)
    changing = {time.name, *(n for n, thing in names.things.items() if thing.changes)}
    if not any(str(s) in changing for s in e.free_symbols):
        fail(len(name) + 1, "nothing in this expression changes along a run: write a state or t in it")
    flags: dict[str, Any] = {}
    at = len(head) + 1
    for option in options:
        word = " ".join(option.split())
        if ":" in word:
            fail(at, f"{show_text(word)} is a second event: give it an --event, or a text, of its own")
        if word not in WORDS:
            fail(at, f"{show_text(word)} is no option of an event; choose from {', '.join(WORDS)}{nearest(word, WORDS)}")
        if WORDS[word].keys() & flags.keys():
            fail(at, f"{word.split()[0]} is given twice")
        flags |= WORDS[word]
        at += len(option) + 1
    return Event(name.strip(), e, doc="added to the run", **flags)
