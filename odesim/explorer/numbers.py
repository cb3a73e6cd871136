"""One number of a model as a slider with a text, which is the truth: what is typed may lie outside the slider, and may be an array."""

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

import numpy as np
import sympy as sp
from bokeh.layouts import column, row
from bokeh.models import Div, Slider, TextInput

from odesim.base.errors import counted
from odesim.explorer.controls import Scale, number_text, scale_of
from odesim.inputs.bind import Numbers
from odesim.symbolic.assumptions import assumed_intervals
from odesim.symbolic.parts import domain_text
from odesim.symbolic.system import System

MOST = 4
"""A size has a slider up to so many times its default: beyond it one types."""


class Field:
    """A number or an array of a model: params, initial or sizes of Controls, by name.

    changed(kind, name, text): called with the text that was typed or slid to, empty for the default.
    """

    def __init__(self, kind: str, name: str, words: str, scale: Scale | None, changed: Callable[[str, str, str], None]) -> None:
        self.kind, self.name, self.scale, self.changed = kind, name, scale, changed
        self.default, self.silent, self.at = "", False, float("nan")
        self.text = TextInput(name=f"{kind}.{name}", sizing_mode="stretch_width")
        self.text.on_change("value", self._typed)
        inputs: Any = self.text
        if scale:
            ends = {"start": scale.place(scale.low), "end": scale.place(scale.high), "step": scale.step}
            self.slider = Slider(
                title="", value=ends["start"], show_value=False, sizing_mode="stretch_width", name=f"slider.{kind}.{name}", **ends
            )
            self.slider.on_change("value", self._slid)
            self.text.update(sizing_mode=None, width=84)
            inputs = row(self.slider, self.text, sizing_mode="stretch_width", styles={"align-items": "center"})
        label = Div(text=f"<b>{escape(name)}</b> {escape(words)}", disable_math=True, sizing_mode="stretch_width", margin=(2, 5, -4, 5))
        self.root = column(label, inputs, sizing_mode="stretch_width")

    def _typed(self, attr: str, old: str, new: str) -> None:
        if self.silent:
            return
        if self.scale:
            self._place(new or self.default)
        self.changed(self.kind, self.name, "" if new.strip() == self.default else new.strip())

    def _slid(self, attr: str, old: float, new: float) -> None:
        # in a notebook the page says back where the slider was set from here, rounded to its steps: nobody has moved it
        if not self.silent and self.scale and not abs(new - self.at) < self.scale.step / 2:
            self.at = new
            text = self.scale.text(new)
            self.silent = True
            self.text.value = text
            self.silent = False
            self.changed(self.kind, self.name, "" if text == self.default else text)

    def _place(self, text: str) -> None:
        """Moves the slider to a text that is a number."""
        try:
            value = float(text)
        except ValueError:
            return
        if self.scale:
            before, self.silent = self.silent, True
            self.slider.value = self.at = self.scale.place(value)
            self.silent = before

    def show(self, text: str, default: str) -> None:
        """Shows a text, or the default where it is empty; says nothing to changed."""
        self.default = default
        self.silent = True
        if self.scale:
            self.text.value = text or default
            self._place(text or default)
        else:
            self.text.update(value=text, placeholder=default)
        self.silent = False


def fields(system: System, numbers: Numbers, changed: Callable[[str, str, str], None]) -> Iterator[Field]:
    """The fields of a model: parameters, sizes, initial values."""
    for p in system.params:
        value = numbers.params[p.name]
        words = f"{p.doc}, in {domain_text(p.domain).removeprefix('the ')}"
        alone = not p.shape and p.indexes is None
        yield Field("params", p.name, words, scale_of(p.domain, float(value), integer=p.integer) if alone else None, changed)
    for name, n in system.sizes.items():
        yield Field("sizes", str(name), "size", Scale(1, max(MOST * n, 10), 1.0), changed)
    sets = assumed_intervals(system)
    for name, start in numbers.initial.items():
        domain = sets[name] or sp.S.Reals
        scale = scale_of(domain, float(start)) if not np.shape(start) else None
        yield Field(
            "initial", name, f"initial value, in {domain_text(domain)}" if domain != sp.S.Reals else "initial value", scale, changed
        )


def defaults_of(numbers: Numbers) -> Mapping[tuple[str, str], str]:
    """{(kind, name): the number that holds where nothing is typed, or what shape it has}."""
    texts: dict[tuple[str, str], str] = {("sizes", name): str(n) for name, n in numbers.sizes.items()}
    for kind, values in (("params", numbers.params), ("initial", numbers.initial)):
        for name, value in values.items():
            shape = np.shape(value)
            texts[kind, name] = array_text(np.asarray(value)) if shape else number_text(float(f"{float(value):.6g}"))
    return texts


def array_text(values: Any) -> str:
    """An array in the room of a text: few numbers, or how many."""
    flat = values.ravel()
    if values.ndim == 1 and flat.size <= 4:
        return ",".join(f"{x:.4g}" for x in flat)
    if np.ptp(flat) == 0:
        return f"{flat[0]:.4g}"
    return f"{counted(flat.size, 'number')}, {flat.min():.3g} to {flat.max():.3g}"
