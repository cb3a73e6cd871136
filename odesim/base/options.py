"""The one table of options: what a run or an ensemble can be asked, each option in one row.

A row is a field of Values (what is computed), RunOptions (how) or Work (by whom, no bit depends on it). Its name is the argument of
odesim.integrate and odesim.ensemble, the option of the commands, and the key of a TOML file. What follows from the row: the option of a
command with its type and help (cli/options.py), how a text or a value of it is checked, whether a Map takes it, what it excludes, and for
RunOptions what is stored, what identifies a run and how it is computed again. The signatures of the two functions repeat type and default,
for readers and type checkers; tests/base/test_run_options.py holds them against the rows.
"""
# ruff: noqa: RUF009, option() is dataclasses.field() with one more word

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from odesim.base.backends import (
    BACKENDS,
    DTYPES,
    ENSEMBLE,
    EXPLICIT,
    NOISY,
    RUN,
    SERIES,
    STABILISED,
    STIFF,
    Backend,
    backends_for,
    find_backend,
)

Reading = Literal["text", "number", "count", "flag", "span", "save", "times", "shard", "tolerances"]
REST = "*"  # in a tolerance by state: every state that is not named
ORDINARY, RESCALED = "ordinary", "rescaled"
CLOCKS = (ORDINARY, RESCALED)
DESIGNS = ("random", "sobol", "halton", "latin")
MAX_EVENTS = 8
MAX_MEMBERS = 10**10


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name, type and default, which are those of the field.

    metavar, help: for the command line; help may be one text for each use. reads: what a text of it is. low: the least number, which is
    allowed where low_allowed, and for a count always; high: the largest, more is taken for a typing error. words: those it takes.
    flag: its name on the command line where that is another one; many: it may be given again and again there. completes: kinds of names
    that a shell offers, with `=` at the end where a value follows. of_maps: whether a Map takes it. excludes: {other option: why both
    together make no sense}.
    """

    metavar: str = ""
    help: str | Mapping[str, str] = ""
    reads: Reading = "text"
    low: float | None = None
    low_allowed: bool = False
    high: int | None = None
    words: tuple[str, ...] = ()
    flag: str = ""
    many: bool = False
    completes: tuple[str, ...] = ()
    of_maps: bool = True
    excludes: Mapping[str, str] = field(default_factory=dict)


def option(default: Any, metavar: str, help: str | Mapping[str, str], **more: Any) -> Any:
    """A row: a field with this default and an Option. `{default}` in the help stands for the default."""
    words = f"{default:g}".replace("e-0", "e-") if isinstance(default, float) else str(default)
    texts = {use: text.replace("{default}", words) for use, text in ({"": help} if isinstance(help, str) else help).items()}
    metadata = {"option": Option(metavar, texts.get("", texts), **more)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def backend_help(use: str, what: str = "") -> str:
    """The help of --backend, from the table of backends. what: the use, if it is not the run."""
    first, *others = backends_for(use)
    words = [f"{first} (default): {find_backend(first).uses[use].summary}"]
    return what + "; ".join([*words, *(f"{name}: {find_backend(name).uses[use].summary}" for name in others)]) + "."


_METHODS = (
    f"{', '.join((*EXPLICIT, *SERIES))}; for stiff problems {', '.join(STIFF)}, {', '.join(STABILISED)}; for noise {', '.join(NOISY)}."
)


@dataclass(frozen=True)
class RunOptions:
    """How a run is integrated: method, steps, tolerances, backend, seed. A stored run is identified by each of them."""

    method: str = option(
        "auto",
        "NAME",
        {
            RUN: f"auto (default: the cheapest, found by short trials), {_METHODS}",
            ENSEMBLE: f"auto (default: chosen for each member), {_METHODS}",
        },
        words=("auto", *EXPLICIT, *SERIES, *STIFF, *STABILISED, *NOISY),
    )
    step: float | None = option(None, "H", "Use a fixed step H; possible with every method.", reads="number", low=0)
    rtol: float = option(1e-6, "R", "Relative tolerance; default {default}.", reads="number", low=0, of_maps=False)
    atol: float | Mapping[str, Any] = option(
        1e-9,
        "A|NAME=A",
        "Absolute tolerance, of all states or of one; default {default}. Several --atol: a number without a name is that of the rest.",
        reads="tolerances",
        many=True,
        completes=("states", "="),
        of_maps=False,
    )
    max_steps: int = option(
        1_000_000,
        "N",
        {RUN: "Stop after N steps; default {default}.", ENSEMBLE: "End a member after N steps; default {default}."},
        reads="count",
        low=1,
    )
    max_step: float | None = option(
        None,
        "H",
        "Make no step longer than H.",
        reads="number",
        low=0,
        of_maps=False,
        excludes={"clock": "max_step is a time of the ordinary clock: the rescaled one has steps of its own kind"},
    )
    first_step: float | None = option(
        None,
        "H",
        "Try H as the first step; default: chosen from the state and its derivatives.",
        reads="number",
        low=0,
        of_maps=False,
        excludes={"clock": "first_step is a time of the ordinary clock: the rescaled one has steps of its own kind"},
    )
    stop_at: tuple[float, ...] = option(
        (),
        "T1,T2,...",
        "End a step at each of these times. Jumps that the model declares are found without this.",
        reads="times",
        of_maps=False,
        excludes={"clock": "stop_at names times of the ordinary clock; the rescaled one looks for the conditions of the model by itself"},
    )
    backend: str = option("numba", "NAME", {use: backend_help(use) for use in (RUN, ENSEMBLE)}, words=tuple(BACKENDS))
    dtype: str = option(DTYPES[0], "NAME", f"{DTYPES[0]} (default) or {DTYPES[1]}.", words=DTYPES)
    strict: bool = option(
        False,
        "",
        {
            RUN: "Give the same bits on every machine (no fused multiply-adds).",
            ENSEMBLE: "Give the same bits on every machine, those of `odesim integrate --strict`.",
        },
        reads="flag",
    )
    clock: str = option(
        ORDINARY,
        "NAME",
        f"{ORDINARY} (default) time, or {RESCALED}: time is stretched near a blow-up, whose moment is found.",
        words=CLOCKS,
        of_maps=False,
    )
    seed: int = option(
        0,
        "S",
        {RUN: "Seed of uniform(), normal() and noise; default {default}.", ENSEMBLE: "Seed of all random numbers; default {default}."},
        reads="count",
        low=0,
    )
    halvings: int = option(
        0, "K", "With noise: follow the path that steps of 2^K H have; default {default}.", reads="count", low=0, of_maps=False
    )

    @property
    def on(self) -> Backend:
        """The row of the backend table. Raises ParamError for an unknown backend."""
        return find_backend(self.backend)

    @property
    def by_state(self) -> bool:
        """Whether states have absolute tolerances of their own."""
        return isinstance(self.atol, Mapping)

    @property
    def rescaled(self) -> bool:
        """Whether the run uses the rescaled clock."""
        return self.clock == RESCALED

    def of_solver(self) -> dict[str, Any]:
        """{option: value} for odesim.run.integrate, without the method."""
        return {name: getattr(self, name) for name in ("step", "rtol", "atol", "max_steps", "max_step", "first_step", "strict")}

    def attributes(self) -> dict[str, Any]:
        """{option: value} as plain data, to store; options_of reads it."""
        return {**vars(self), "stop_at": list(self.stop_at)}

    def numbers(self) -> dict[str, Any]:
        """The options as plain data, with 0 and 1 for False and True, for file formats that have no truth values."""
        return {name: int(value) if isinstance(value, bool) else value for name, value in self.attributes().items()}


@dataclass(frozen=True)
class Values:
    """What is computed: parameters, initial values, times, members and outputs, as people give them."""

    params: Mapping[str, Any] = option(
        {},
        "NAME=VALUE",
        {RUN: "Set a parameter.", ENSEMBLE: "Set a parameter of all members."},
        flag="set",
        many=True,
        completes=("params", "="),
    )
    initial: Mapping[str, Any] = option(
        {},
        "NAME=VALUE",
        {RUN: "Set an initial value.", ENSEMBLE: "Set an initial value of all members."},
        flag="init",
        many=True,
        completes=("states", "="),
    )
    sizes: Mapping[str, int] | None = option(
        None,
        "M=1000",
        "Set a size. A size that follows from a given array need not be set.",
        flag="size",
        many=True,
        completes=("sizes", "="),
    )
    span: tuple[float, float] | None = option(None, "T0:T1", "Start and end time; default: those of the model.", reads="span")
    steps: int | None = option(None, "N", "Number of updates of a Map, whose times are whole numbers.", reads="count", low=1)
    save: Any = option(
        None,
        "N|log:N|T1,T2,...",
        {
            RUN: "Saved times: N evenly spaced (default 200; of a Map each, and of more than 1000 updates every 5th, 7th, "
            "11th, ...), N geometrically spaced, "
            "or a list (a single time as T1,).",
            ENSEMBLE: "Saved times: N evenly spaced, N geometrically spaced, or a list; default: the end.",
        },
        reads="save",
    )
    vary: Mapping[str, Any] = option(
        {}, "NAME=VALUE", "Give each member its own value: random, or a row of a table.", many=True, completes=("params", "states", "=")
    )
    grid: Mapping[str, Any] = option(
        {},
        "NAME=POINTS",
        "Points of a parameter or initial value. Several --grid make all combinations.",
        many=True,
        completes=("params", "states", "="),
    )
    zipped: Mapping[str, Any] = option(
        {},
        "NAME=POINTS",
        "Points that are taken together: the first of each, the second of each, ...",
        flag="zip",
        many=True,
        completes=("params", "states", "="),
    )
    members: int | None = option(
        None, "N", "Number of random members; with --grid or --zip at each of its points.", reads="count", low=1, high=MAX_MEMBERS
    )
    design: str = option(
        DESIGNS[0],
        "NAME",
        "How random values of members are placed: random (default, each by itself), or together, evenly: sobol (best with 2^k members), "
        "halton, or latin (a Latin hypercube).",
        words=DESIGNS,
    )
    sensitivities: str | Iterable[str] = option(
        (),
        "NAME",
        "Also compute derivatives with respect to this parameter or initial value.",
        flag="sensitivity",
        many=True,
        completes=("params", "states"),
    )
    events: str | Iterable[str] = option(
        (), "'NAME: EXPRESSION'", "Add an event: a time at which EXPRESSION passes 0.", flag="event", many=True
    )
    until_rest: bool = option(
        False,
        "",
        "End where nothing moves any more: an event 'at rest', where sqrt(sum (dv/dt)^2 / (1 + sum v^2)) of all states falls below 100 "
        "times the relative tolerance.",
        reads="flag",
    )
    observe: Any = option(
        (),
        "NAME[,NAME]|all",
        "Store these observables at the saved times; default: none, with --plot those of --var, or those that are one number.",
        completes=("observables",),
    )
    max_events: int = option(
        MAX_EVENTS,
        "K",
        "Keep the first K occurrences of each event; default {default}. 0 looks for none.",
        reads="count",
        low=0,
        high=10**6,
    )

    @property
    def has_design(self) -> bool:
        """Whether a design gives the members; else arrays with a leading axis do."""
        return bool(self.vary or self.grid or self.zipped or self.members is not None or self.design != DESIGNS[0])


@dataclass(frozen=True)
class Work:
    """Who computes, for how long: no bit of a result depends on it, so it identifies no run, and resume may have others."""

    threads: int = option(1, "N", "Number of threads; default {default}. The bits do not depend on it.", reads="count", low=1, high=1024)
    max_seconds: float | None = option(
        None, "S", "Stop after S seconds, as Ctrl-C does: what was computed is kept.", reads="number", low=0, low_allowed=True
    )
    fail_fast: bool = option(False, "", "Stop after the first chunk in which a member failed.", reads="flag")
    shard: tuple[int, int] | None = option(None, "I/N", "Compute part I of N; all parts share the run in --out.", reads="shard")


def largest_atol(atol: Any, state: str) -> float:
    """The largest absolute tolerance of a component of a state; with "", such as for an observable, of all states."""
    atol = _table(atol)
    if not isinstance(atol, Mapping):
        return float(atol)
    every = {REST: RunOptions.atol, **atol}
    return max(float(x) for value in ([every.get(state, every[REST])] if state else every.values()) for x in flat(value))


def _table(atol: Any) -> Any:
    """Tolerances of a store, where those by state are text: netCDF has no dicts."""
    import json  # not above: `import odesim` comes here, beside a file json.py of the current folder

    return json.loads(atol) if isinstance(atol, str) else atol


def flat(value: Any) -> list[Any]:
    """The numbers of a nested list."""
    return [x for part in value for x in flat(part)] if isinstance(value, list | tuple) else [value]


def _rows(table: type) -> dict[str, Option]:
    return {row.name: row.metadata["option"] for row in fields(table)}


_EMPTY: dict[type, dict[str, bool]] = {
    table: {row.name: isinstance(row.default_factory, type) for row in fields(table)} for table in (Values, RunOptions, Work)
}
NAMES = tuple(row.name for row in fields(RunOptions))
OPTIONS: dict[str, Option] = {**_rows(Values), **_rows(RunOptions), **_rows(Work)}
IN_FILES = ("span", "steps", "save", *NAMES)  # keys of a TOML file above its tables


def options_of(attributes: Mapping[str, Any]) -> RunOptions:
    """The options in stored attributes. Raises KeyError where one is missing."""
    values = {name: attributes[name] for name in NAMES}
    return RunOptions(**{**values, "atol": _table(values["atol"]), "stop_at": tuple(values["stop_at"]), "strict": bool(values["strict"])})


def pick(table: type, arguments: Mapping[str, Any]) -> Any:
    """An instance of Values, RunOptions or Work from those of the arguments that it has. None stands for an empty mapping."""
    empty = _EMPTY[table]
    return table(**{name: {} if arguments[name] is None and empty[name] else arguments[name] for name in empty if name in arguments})


# which code computed a run: stored with it, and asked when it is computed again
_WRITTEN = Path(__file__).parents[1] / "version.txt"  # by an installation, from the tag; a bare checkout has none
__version__ = _WRITTEN.read_text(encoding="utf-8").strip() if _WRITTEN.exists() else "0.2.0.dev0"


@cache
def versions() -> dict[str, str]:
    """{package: version} of the packages that compute, without importing them: a warm start needs no numba."""
    import platform
    from importlib.metadata import version

    return {"odesim": __version__, "python": platform.python_version()} | {name: version(name) for name in ("numpy", "numba", "sympy")}


def version_of(package: str) -> str | None:
    """The installed version of a package, without importing it; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def other_versions(then: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """{package: (version then, version now)} of those whose versions differ, None where there was none."""
    return {name: (then.get(name), here) for name, here in now.items() if then.get(name) != here}
