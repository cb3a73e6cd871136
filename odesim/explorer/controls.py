"""What the controls of the explorer say, as data: texts of numbers become a request, and the request a command, Python, a notebook.

No library of widgets is imported here. Texts are read by the grammar of the command line, and by nothing else.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, isfinite, log10
from typing import Any

import sympy as sp

from odesim.api.integrate import integrate
from odesim.base.errors import ParamError
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.grammar import Value, parse_number, parse_size, parse_value
from odesim.inputs.registry import load_with_origin
from odesim.inputs.times import parse_span
from odesim.run.solution import Solution
from odesim.symbolic.system import System

POINTS = 200
"""Saved times of a run, as `odesim integrate` has them: observables at each are the dearest part of drawing again."""
SECONDS = 10.0
"""A run stops after them, not counting what is compiled: a page must answer, and what was computed till then is drawn."""
STEPS = 1000
"""Steps over the span of a model with noise, which needs a fixed step, where none is given."""


@dataclass(frozen=True)
class Controls:
    """What differs from the model's defaults, as texts of the command line: {name: VALUE}, T0:T1, the name of a method.

    files: the texts @FILE that may be read, those of the command that began: a page names no files of the machine.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    initial: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    span: str = ""
    method: str = "auto"
    step: str = ""
    seed: str = ""
    files: frozenset[str] = frozenset()

    @cached_property
    def request(self) -> dict[str, Any]:
        """The arguments of odesim.integrate but the model, values as parsed. Raises ParamError."""
        request: dict[str, Any] = {name: self._values(getattr(self, name)) for name in ("params", "initial")}
        request["sizes"] = dict(parse_size(f"{name}={text}") for name, text in self.sizes.items())
        request |= {"span": parse_span(self.span)} if self.span.strip() else {}
        request |= {"method": self.method} if self.method != "auto" else {}
        request |= {"step": float(parse_number(self.step, "step"))} if self.step.strip() else {}
        request |= {"seed": self._seed()} if self.seed.strip() else {}
        return {name: value for name, value in request.items() if value != {}}

    def _values(self, texts: Mapping[str, str]) -> dict[str, Value]:
        values = {name: parse_value(text, name) for name, text in texts.items()}
        for name, value in values.items():
            if value.kind == "file" and value.text not in self.files:
                raise ParamError(
                    f"{name}: a page reads no file: give {value.text} to the command that starts the explorer, as --set {name}={value.text}"
                )
        return values

    def _seed(self) -> int:
        seed = parse_number(self.seed, "seed")
        if not isinstance(seed, int):
            raise ParamError(f"seed: {self.seed} is not a whole number")
        return seed


class Explored:
    """A model as it is explored: loaded once, run for any Controls of it. Raises an OdesimError where it cannot be loaded."""

    def __init__(self, model: str | System) -> None:
        self.system, self.origin = load_with_origin(model)
        self.ref = model if isinstance(model, str) else ""

    def request(self, controls: Controls) -> dict[str, Any]:
        """The request of these controls; a model with noise has a step. Raises an OdesimError."""
        request = dict(controls.request)
        if self.system.noise and "step" not in request:
            numbers = self.numbers(controls)
            request["step"] = float(f"{(numbers.t1 - numbers.t0) / STEPS:.6g}")
        return request

    def numbers(self, controls: Controls) -> Numbers:
        """All numbers of a run, checked. Raises an OdesimError."""
        values = {name: controls.request.get(name) for name in ("params", "initial", "sizes", "span")}
        return bind(self.system, **values, seed=controls.request.get("seed", 0))

    def run(self, controls: Controls) -> Solution:
        """The Solution that odesim.integrate gives for these controls at POINTS times. Raises an OdesimError."""
        return integrate(self.system, **self.request(controls), save=POINTS, max_seconds=SECONDS)

    def command(self, controls: Controls) -> str:
        """The command that computes the same run; of a System that no file has, a sentence."""
        if not self.ref:
            return f"# {self.system.name} is a System of a program: write it to a file to run it as a command"
        words = ["odesim", "integrate", self.ref]
        request = self.request(controls)
        for name, flag in (("params", "--set"), ("initial", "--init"), ("sizes", "--size")):
            words += [word for key, value in request.get(name, {}).items() for word in (flag, f"{key}={shown(value)}")]
        if "span" in request:
            words += ["--span", ":".join(map(number_text, request["span"]))]
        for name in ("method", "step", "seed"):
            words += [f"--{name}", number_text(request[name]) if name != "method" else request[name]] if name in request else []
        return shlex.join([*words, "--save", str(POINTS)])

    def python(self, controls: Controls) -> str:
        """The same as a program, in which a System without a file is called `system`."""
        lines = []
        for name, value in self.request(controls).items():
            if isinstance(value, Mapping):
                inside = ", ".join(f"{json.dumps(key)}: {literal(one)}" for key, one in value.items())
                lines.append(f"    {name}={{{inside}}},\n")
            else:
                lines.append(f"    {name}={json.dumps(value) if isinstance(value, str) else repr(value)},\n")
        return f"import odesim\n\nrun = odesim.integrate(\n    {self._named},\n{''.join(lines)}    save={POINTS},\n)\nrun.plot()\n"

    @property
    def _named(self) -> str:
        return json.dumps(self.ref) if self.ref else "system"

    def notebook(self, controls: Controls) -> str:
        """The same as a Jupyter notebook, JSON."""
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": f"# {self.system.name}"},
            *(
                {"cell_type": "code", "metadata": {}, "source": source, "execution_count": None, "outputs": []}
                for source in (self.python(controls), f"odesim.load_model({self._named})")
            ),
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": kernel, "cells": cells}, indent=1)


def shown(value: Any) -> str:
    """A value as a text of the command line."""
    return value.text if isinstance(value, Value) else str(value)


def literal(value: Any) -> str:
    """A value as Python has it: a number, a list, or a text for files and random numbers."""
    if isinstance(value, Value):
        return repr(value.data) if value.kind in ("number", "list") else json.dumps(value.text)
    return repr(value)


def number_text(x: float) -> str:
    """A number as a text that is read as the same number."""
    return repr(int(x)) if float(x).is_integer() and abs(x) < 1e15 else repr(float(x))


@dataclass(frozen=True)
class Scale:
    """The range of a slider. log: it moves in powers of 10."""

    low: float
    high: float
    step: float = 0.0
    log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands: itself or its power of 10, moved to the nearer end where it is outside."""
        value = min(max(value, self.low), self.high)
        return log10(value) if self.log else value

    def text(self, place: float) -> str:
        """The number at a place, as a text of at most four digits, or a whole number."""
        value = 10**place if self.log else place
        return f"{value:.0f}" if self.step == 1 else f"{min(max(float(f'{value:.4g}'), self.low), self.high):g}"


WIDE = 100.0
"""A number that is positive by its domain is shown up to this many times smaller and larger."""


def scale_of(domain: sp.Set, value: float, *, integer: bool = False) -> Scale:
    """The Scale of a number with this domain and default: the domain where it is bounded, else a range around the default."""
    low, high = (float(end) for end in (domain.inf, domain.sup))
    size = max(abs(value), 0.5)
    if integer:
        low = low if isfinite(low) else floor(value - 10)
        return Scale(low, high if high - low <= 1000 else max(4 * value, low + 10), 1.0)
    if low >= 0 and value > 0 and high > WIDE * value:
        return Scale(max(low, value / WIDE), WIDE * value, 0.01, log=True)
    left, right = (
        isinstance(domain, sp.Interval) and bool(end) for end in (getattr(domain, "left_open", 0), getattr(domain, "right_open", 0))
    )
    ends = (
        (low if isfinite(low) else min(value, high if isfinite(high) else value) - 4 * size),
        (high if isfinite(high) else max(value, low) + 4 * size),
    )
    step = (ends[1] - ends[0]) / 400
    return Scale(ends[0] + step * (left and isfinite(low)), ends[1] - step * (right and isfinite(high)), step)
