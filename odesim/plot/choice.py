"""The user's choice of what to draw of a run: quantities, axes, a time, a component, logarithmic scales; checked against the run."""

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from odesim.base.arrays import Array, entry, to_ends
from odesim.base.errors import ParamError, apart, counted, no_such, value_text

if TYPE_CHECKING:
    import xarray

TIME = "time"
SCALES = "xyc"
RECORD, STORE = "; `odesim train --observe NAME` records more", "; `odesim ensemble --observe NAME` stores more"
WORD = re.compile(r"(\w+)(?:\[([0-9, ]+)\])?", re.ASCII)


@dataclass(frozen=True)
class Choice:
    """What to draw of a run; the run decides everything that is empty or None. The methods `plot` of runs take the same words.

    Attributes
    ----------
    var : tuple of str
        States and observables.
    x, y : str
        Of an ensemble: what varies between members, or `time`.
    at : float
        A saved time, the nearest one.
    index : tuple of int
        A component.
    log : str
        Letters of logarithmic scales (x, y, and c for colours), or "none".
    all : bool
        Everything, not as many panels as fit a page.

    Examples
    --------
    >>> odesim.plot.Choice(("v",), index=(0,), log="y").var
    ('v',)
    """

    var: tuple[str, ...] = ()
    x: str | None = None
    y: str | None = None
    at: float | None = None
    index: tuple[int, ...] | None = None
    log: str | None = None
    all: bool = False

    def check(self) -> None:
        """Raises ParamError for scales that do not exist, and for axes that contradict each other."""
        if self.log not in (None, "none") and not (self.log and set(self.log) <= set(SCALES) and len(set(self.log)) == len(self.log)):
            raise ParamError(f"log takes letters of x, y and c (colours), each once, or none, not {self.log!r}")
        if self.y is not None and self.x is None:
            raise ParamError(f"y = {self.y!r} needs x too: a map has two axes")
        if self.x is not None and self.x == self.y:
            raise ParamError(f"x and y are both {self.x!r}: choose two")
        if self.y == TIME or (self.x == TIME and self.y is not None):
            raise ParamError("time is an axis of curves alone: leave y out")
        if self.x == TIME and self.at is not None:
            raise ParamError("x = 'time' shows all times, and at is one of them: give one of the two")

    def names(self, shapes: Mapping[str, Sequence[int]], where: str, what: str = "state or observable", more: str = "") -> list[str]:
        """The names to draw, of those of {name: shape}: with an index alone, those that have such axes. Raises ParamError.

        where: the model or task; what: the kind of quantity; more: how a run gets more of them.
        """
        for name in self.var:
            if name not in shapes:
                sentence = no_such(what, name, shapes, where)
                raise ParamError(sentence if sentence.endswith("?") else sentence + more)
        fitting = [name for name, shape in shapes.items() if self.index is None or len(shape) == len(self.index)]
        return list(dict.fromkeys(self.var)) or fitting or list(shapes)

    def page(self, names: Sequence[str], most: int) -> tuple[list[str], list[str]]:
        """(names on the page, the others): at most so many on it, unless all were chosen; losses and entropies first."""
        # a loss says most in one curve; what was named keeps its order
        names = names if self.var else sorted(names, key=lambda name: ("loss" not in name, "entropy" not in name))
        most = len(names) if self.all else most
        return list(names[:most]), list(names[most:])

    def component(self, name: str, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The index to draw of an array of this shape, None where none was chosen. Raises ParamError."""
        if self.index is None:
            return None
        if len(self.index) != len(shape):
            axes = f"has {counted(len(shape), 'axis', 'axes')}" if shape else "is one number without an index"
            raise ParamError(
                f"index {','.join(map(str, self.index))} has {counted(len(self.index), 'number')}, and {name} {axes}; choose with var"
            )
        for i, n in zip(self.index, shape, strict=True):
            if not 0 <= i < n:
                raise ParamError(f"index {i} is outside {name}, whose shape is ({', '.join(map(str, shape))}): choose 0 to {n - 1}")
        return self.index

    def row(self, times: Array) -> int:
        """The number of the saved time nearest to `at`, the last one by default. times (T,). Raises ParamError."""
        if self.at is None:
            return len(times) - 1
        first, last = float(times[0]), float(times[-1])
        low, high = min(first, last), max(first, last)
        if not (math.isfinite(self.at) and low <= to_ends(np.array([self.at]), low, high)[0] <= high):
            at, a, b = apart(self.at, first, last)
            saved = f"outside the saved times, which go from {a} to {b}" if len(times) > 1 else f"not the only saved time, {b}"
            raise ParamError(f"at = {at} is {saved}")
        return int(np.argmin(np.abs(times - self.at)))

    def scale(self, letter: str) -> bool | None:
        """Whether x, y or c is to be logarithmic; None where nothing was chosen."""
        return None if self.log is None else letter in self.log

    def is_log(self, letter: str, natural: bool) -> bool:
        """Whether x, y or c is logarithmic; natural: whether it is where nothing was chosen."""
        chosen = self.scale(letter)
        return natural if chosen is None else chosen

    def refuse_colors(self) -> None:
        """Raises ParamError if logarithmic colours were chosen for a picture that has no map."""
        if self.scale("c"):
            raise ParamError("log c: this picture has no colours, which are those of maps; leave c out of log")

    def refuse_axes(self, kind: str) -> None:
        """Raises ParamError if a choice is one of ensembles alone. kind: what the run is."""
        for name, value in (("x", self.x), ("y", self.y), ("at", self.at)):
            if value is not None:
                raise ParamError(f"{name} is for ensembles, and the run is {kind}")

    def of_training(self, run: "xarray.Dataset") -> "xarray.Dataset":
        """The chosen observables of a training Dataset; with an index, the component of each, called `c[0, 3]`. Raises ParamError."""
        self.check()
        self.refuse_axes("a training")
        axes = {str(name): tuple(dim for dim in v.dims if dim not in ("seed", TIME)) for name, v in run.data_vars.items()}
        shapes = {name: tuple(run.sizes[dim] for dim in dims) for name, dims in axes.items()}
        names = self.names(shapes, str(run.attrs.get("task", "the run")), "recorded observable", RECORD)
        if self.index is None:
            return run.drop_vars([name for name in run.data_vars if name not in names]) if self.var else run
        parts = {name: self.component(name, shapes[name]) or () for name in names}
        chosen = {entry(name, self.index): run[name].isel(dict(zip(axes[name], part, strict=True))) for name, part in parts.items()}
        return run.drop_vars(list(run.data_vars)).assign(chosen)


def several_panels(names: Sequence[str]) -> ParamError:
    """The refusal to draw all of these on one panel."""
    return ParamError(f"ax is one panel, and this picture has {len(names)}: choose one with var ({', '.join(names)})")


def split_index(text: str) -> tuple[str, tuple[int, ...]]:
    """("mu", (3,)) of `mu[3]`, ("mu", ()) of `mu`; a text that is neither is a name."""
    match = WORD.fullmatch(text.strip())
    if not match:
        return text, ()
    inside = match[2]
    return match[1], tuple(int(i) for i in inside.split(",") if i.strip()) if inside else ()


def make_choice(
    *,
    var: str | Iterable[str] = (),
    x: str | None = None,
    y: str | None = None,
    at: float | None = None,
    index: int | Iterable[int] | None = None,
    log: str | None = None,
    all: bool = False,
) -> Choice:
    """The Choice of these words; a single name or number is one. Raises ParamError for what is neither."""
    names = (var,) if isinstance(var, str) or not isinstance(var, Iterable) else tuple(var)
    texts = {"var": names, "x": (x,), "y": (y,), "log": (log,)}
    for option, values in texts.items():
        for text in values:
            if not isinstance(text, str | None) or (option == "var" and text is None):
                raise ParamError(f"{option} must be a name, as a text, not {value_text(text)}")
    try:
        numbers = None if index is None else tuple(operator.index(i) for i in (index if isinstance(index, Iterable) else (index,)))  # type: ignore[call-overload]
    except TypeError:
        raise ParamError(f"index must be a whole number, or several, not {value_text(index)}") from None
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float | np.number)):
        raise ParamError(f"at must be a time, not {value_text(at)}")
    return Choice(names, x, y, None if at is None else float(at), numbers, log, bool(all))
