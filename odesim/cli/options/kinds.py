"""Types of options: numbers by our own grammar, which knows no inf, no nan and no overflow."""

import math
import re
from pathlib import Path
from typing import Any

import click

REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class RealKind(click.ParamType):
    """A finite number, above low where that is given (or equal to it where low is allowed)."""

    name = "number"

    def __init__(self, low: float | None = None, *, low_allowed: bool = False) -> None:
        self.low = low
        self.low_allowed = low_allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(value) if REAL.fullmatch(str(value)) else math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        if self.low is not None and (number < self.low or (number == self.low and not self.low_allowed)):
            self.fail(f"must be {'at least' if self.low_allowed else 'above'} {self.low:g}, not {value}", param, ctx)
        return number


class Count(click.ParamType):
    """A whole number, at least low; 1e6 is one."""

    name = "count"

    def __init__(self, low: int) -> None:
        self.low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        number = int(text) if re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) else None
        if number is None and REAL.fullmatch(text) and float(text).is_integer():
            number = int(float(text))
        if number is None:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if number < self.low:
            self.fail(f"must be at least {self.low}, not {text}", param, ctx)
        if number >= 2**63:
            self.fail(f"{text} is too large", param, ctx)
        return number


class OneOf(click.ParamType):
    """One word of a few; what: what such a word is called."""

    name = "choice"

    def __init__(self, what: str, *words: str) -> None:
        self.what, self.words = what, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from odesim.base.errors import ParamError, no_such

        if value not in self.words:
            raise ParamError(no_such(self.what, str(value), self.words))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class RunPlace(click.Path):
    """The folder of a run, or its URL such as s3://bucket/run.zarr."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" not in str(value):
            return super().convert(value, param, ctx)
        from odesim.store.remote import as_place

        return as_place(str(value))


class ClusterKind(click.ParamType):
    """The address of a dask scheduler, or local:N."""

    name = "cluster"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from odesim.base.cluster import local_count

        local_count(str(value))
        return str(value)


CLUSTER = click.option(
    "--cluster",
    metavar="ADDRESS",
    type=ClusterKind(),
    help="Use the workers of a dask cluster: tcp://HOST:PORT, or local:N for N processes here.",
)


class ModelKind(click.ParamType):
    """A model's name or a file; the shell completes both."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.inputs.registry import list_models

        found = [CompletionItem(name) for name in list_models() if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


class Figure(ModelKind):
    """A figure's name; the shell completes it."""

    name = "figure"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.plot.figures import list_figures

        return [CompletionItem(name) for name in ["all", *list_figures()] if name.startswith(incomplete)]
