"""Words of the command line as a request: run options over a TOML file over defaults, members of an ensemble, a picture."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.errors import ParamError, StoreError, nearest, no_such
from odesim.base.options import IN_FILES, OPTIONS, REST, flat
from odesim.cli.options import kind
from odesim.inputs.grammar import device_sentence, show_text

if TYPE_CHECKING:
    from odesim.plot.choice import Choice

TABLES = ("params", "sizes", "initial")


def read_request(words: Mapping[str, Any], *, points: int | None = None, updates: int = 0) -> dict[str, Any]:
    """Arguments of odesim.integrate or odesim.ensemble but the model, from the options of a command: those that are given, by name.

    words: as click has them, NAME=VALUE as texts. A file of the option `file` has what they do not. points: saved times where nothing is
    said of them, and of a Map with fewer updates than `updates` all. Raises ParamError and StoreError.
    """
    from odesim.inputs.grammar import parse_assignment, parse_numbers, parse_size
    from odesim.inputs.times import Save, parse_save, parse_span

    times = lambda text: parse_numbers(text.split(","), "--stop-at")  # noqa: E731
    read: dict[str, Callable[[str], Any]] = {"span": parse_span, "times": times, "save": parse_save, "shard": read_shard}
    design = {name: named(f"--{OPTIONS[name].flag or name}", words[name]) for name in ("vary", "grid", "zipped") if name in words}
    varied = {name for values in design.values() for name in values}
    file = read_file(words["file"]) if words["file"] else {}
    request = {
        **file,
        **{name: value for name, value in words.items() if value is not None and name in OPTIONS and (value or name != "atol")},
        **design,
    }
    for name, value in request.items():
        if name == "atol" and isinstance(value, tuple):
            request[name] = tolerances(text.rpartition("=")[::2] for text in value)
        if isinstance(value, str) and OPTIONS[name].reads in read:
            request[name] = read[OPTIONS[name].reads](value)
    assignments: dict[str, Callable[[str], tuple[str, Any]]] = {
        "params": partial(parse_assignment, option="--set"),
        "sizes": parse_size,
        "initial": partial(parse_assignment, option="--init"),
    }
    for name, parse in assignments.items():
        of_file = {key: value for key, value in file.get(name, {}).items() if key not in varied}
        request[name] = {**of_file, **once(f"--{OPTIONS[name].flag}", map(parse, words[name]))}
    if "save" not in request and points:
        request["save"] = Save(points, updates=updates)
    return request


def tolerances(texts: Iterable[tuple[str, str]], option: str = "--atol") -> Any:
    """The absolute tolerance from texts (STATE, A), where no state is the rest: a number, or {state: number or nested list}."""
    from odesim.inputs.grammar import parse_value

    pairs = [(name.strip() or REST, parse_value(text, f"{option} {name}".strip())) for name, text in texts]
    for name, value in pairs:
        if value.kind not in ("number", "list") or (name == REST and value.kind == "list"):
            raise ParamError(f"{option} takes A for all states, or STATE=A with a number or an array, not {show_text(value.text)}")
        if any(x < 0 for x in flat(value.data)):
            raise ParamError(f"{value.where}: must be at least 0, not {show_text(value.text)}")
    values = {name: value.data for name, value in once(option, pairs).items()}
    return values[REST] if values.keys() == {REST} else values


def once(option: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by name. Raises ParamError if a name comes twice."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ParamError(f"{option} {name} is given twice; give it once")
        values[name] = value
    return values


def read_file(file: Path) -> dict[str, Any]:
    """The request in a TOML file: tables [params], [sizes], [initial], and run options above them.

    Raises ParamError for a key or value that is none, StoreError for a file that cannot be read.
    """
    from odesim.inputs.grammar import parse_size

    content = read_toml(file)
    for key, value in content.items():
        if key not in IN_FILES and key not in TABLES:
            raise ParamError(no_key(key, file))
        if isinstance(value, dict) != (key in TABLES) and key != "atol":
            raise ParamError(f"{file}: {key} {'is a table: write [' + key + '] above its lines' if key in TABLES else 'is not a table'}")
    sizes = [parse_size(f"{name}={as_text(value, f'{file}: {name}')}") for name, value in content.get("sizes", {}).items()]
    options = {name: as_option(name, value, file) for name, value in content.items() if name in IN_FILES}
    values = {name: as_values(content.get(name, {}), file) for name in ("params", "initial")}
    return {**options, **values, "sizes": dict(sizes)}


def no_key(key: str, file: Path) -> str:
    """The sentence for a line above the tables that is no option: often a parameter outside its table."""
    keys = [*IN_FILES, *TABLES]
    places = "a parameter belongs under [params], a size under [sizes], an initial value under [initial]"
    return f"no key {key!r} in {file}: {places}; options are {', '.join(sorted(IN_FILES))}{nearest(key, keys)}"


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises StoreError."""
    import tomllib

    if device := device_sentence(file):
        raise StoreError(device)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise StoreError(f"{file} is not TOML: {error}") from None
    except RecursionError:
        raise StoreError(f"{file} is nested too deeply") from None


def as_values(table: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Parsed values by name; a file `@x.csv` is relative to the folder of the TOML file."""
    from odesim.inputs.grammar import parse_value

    values = {}
    for name, value in table.items():
        where = f"{file}: {name}"
        text = as_text(value, where)
        if text.startswith("@"):
            text = f"@{file.parent / text[1:]}"
        values[name] = parse_value(text, where)
    return values


# A value of a file goes through the text that it would be on the command line: one grammar, one set of sentences, and 1e6 is a whole
# number in both although TOML calls it a float.
def as_option(name: str, value: Any, file: Path) -> Any:
    """A run option of a file, checked as on the command line; span and save stay text, in the form they have there."""
    where = f"{file}: {name}"
    row = OPTIONS[name]
    if row.reads == "tolerances":
        members = value if isinstance(value, dict) else {"": value}
        return tolerances([(state, as_text(part, where)) for state, part in members.items()], where)
    if row.reads == "flag":
        if not isinstance(value, bool):
            raise ParamError(f"{where} is true or false, not {value!r}")
        return value
    if isinstance(value, list) and row.reads in ("span", "save", "times"):
        one = "," if name == "save" and len(value) == 1 else ""  # without it a number of times
        return (":" if name == "span" else ",").join(as_text(part, where) for part in value) + one
    if isinstance(value, list):
        raise ParamError(f"{where} is one value, not a list")
    text = as_text(value, where)
    reader = kind(row)
    if reader is None:
        return text
    try:
        return reader.convert(text, None, None)
    except click.BadParameter as error:
        raise ParamError(f"{where}: {error.message}") from None


def as_text(value: Any, where: str) -> str:
    """A TOML value as text of the command line. Raises ParamError for a type that has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        raise ParamError(f"{where} takes numbers, lists of numbers or text, not {value!r}")
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise ParamError(f"{where} takes numbers, not {value!r}") from None


def named(option: str, texts: Sequence[str]) -> dict[str, str]:
    """{name: text} from words NAME=TEXT. Raises ParamError."""
    pairs = []
    for text in texts:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        base, bracket, _ = name.partition("[")
        if equals and bracket and base.strip().isidentifier():
            raise ParamError(f"{option} takes whole arrays, not {name}: give each member its row, as in --vary '{base}=[[1, 2], [3, 4]]'")
        if not equals or not name.isidentifier():
            what = "VALUE" if option == "--vary" else "POINTS"
            raise ParamError(f"{option} takes NAME={what}, not {show_text(text)}")
        if not value:
            raise ParamError(f"{option} {name}: the value is empty")
        pairs.append((name, value))
    return once(option, pairs)


def read_shard(text: str) -> tuple[int, int]:
    """(i, n) from the word I/N. Raises ParamError unless 1 <= i <= n."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text, re.ASCII)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ParamError(f"--shard takes I/N with 1 <= I <= N, as in 1/4, not {show_text(text)}")
    return int(match[1]), int(match[2])


def read_choice(
    *, var: str | None, x: str | None, y: str | None, at: float | None, index: str | None, log: str | None, all: bool = False
) -> "Choice":
    """The Choice of these words. Raises ParamError."""
    from odesim.plot.choice import Choice

    names = tuple(name.strip() for name in var.split(",")) if var is not None else ()
    if index is not None and not re.fullmatch(r"\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*", index, re.ASCII):
        raise ParamError(f"--index takes whole numbers from 0, as in 3 or 1,0, not {show_text(index)}")
    component = tuple(int(i) for i in index.split(",")) if index is not None else None
    choice = Choice(names, x and x.strip(), y and y.strip(), at, component, log, all)
    choice.check()
    return choice


def drawn_observables(model: str, var: str | None) -> str | None:
    """What --observe is for a picture of an ensemble if it is not given: the observables of --var, else those that are one number.

    An array of each member could fill the memory.
    """
    from sympy import Basic

    from odesim.inputs.registry import load_model

    system = load_model(model)
    numbers = [name for name, e in system.observables.items() if isinstance(e, Basic) and not system.observable_indices(name)]
    named = [name.strip() for name in var.split(",")] if var else numbers
    return ",".join(name for name in named if name in system.observables) or None


def choice_for(
    model: str, observe: str | None, sensitivities: Iterable[str], varied: Iterable[str], words: Mapping[str, str | None], all: bool
) -> "Choice":
    """The Choice of --var, --x and --y of an ensemble that is still to be computed. Raises ParamError.

    observe, sensitivities: what it stores beside its states, as its options name it; varied: names of what differs between members.
    """
    from odesim.ensembles.request import check_observe
    from odesim.inputs.registry import load_model
    from odesim.plot.choice import TIME, split_index

    system = load_model(model)
    plain = [*system.states, *check_observe(system, observe)]
    stored = [*plain, *(f"d{v}_d{p}" for v in plain for p in sensitivities)]
    choice = read_choice(var=words["var"], x=words["x"], y=words["y"], at=None, index=None, log=None, all=all)
    choice.names(dict.fromkeys(stored, ()), f"what this run stores of {system.name}")
    for option, text in (("--x", choice.x), ("--y", choice.y)):
        if text is not None and text != TIME and split_index(text)[0].removesuffix("_start") not in varied:
            raise ParamError(no_such(f"varied number ({option})", text, [*varied, TIME], system.name))
    return choice
