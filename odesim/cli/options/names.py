"""Shell completion of names: parameters, states, sizes and observables of the model, or settings of the task, that a command has."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from odesim.symbolic import System

Complete = Callable[[click.Context, click.Parameter, str], list[Any]]
Described = Iterator[tuple[str, str]]


def completed(*kinds: str, ending: str = "=") -> Complete:
    """A shell_complete function for names of these kinds, each with `ending`: params, states, sizes, observables, settings.

    It offers nothing where the model is a file, which would be executed, and where anything is wrong: a shell shows no errors.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        try:
            found = [pair for kind in kinds for pair in KINDS[kind](ctx)]
        except Exception:  # a name that is not typed to its end, a package that is broken
            return []
        return [CompletionItem(f"{name}{ending}", help=words) for name, words in found if name.startswith(incomplete)]

    return complete


def given(ctx: click.Context, name: str) -> str:
    """The argument of this name; click leaves it among the others where an option is not complete, as the last one here."""
    return str(ctx.params.get(name) or ctx.args[0])


def model_of(ctx: click.Context) -> "System":
    """The installed model whose name stands in the words before. Raises where there is none."""
    from odesim.inputs.registry import is_path, load_model

    name = given(ctx, "model")
    if is_path(name):
        raise ValueError(name)
    return load_model(name)


def params(ctx: click.Context) -> Described:
    """The parameters of the model, with their meaning."""
    return ((p.name, p.doc) for p in model_of(ctx).params)


def states(ctx: click.Context) -> Described:
    """The states of the model, with their meaning."""
    return ((name, "a state") for name in model_of(ctx).states)


def sizes(ctx: click.Context) -> Described:
    """The sizes of the model, with their meaning."""
    return ((name, "a size") for name in model_of(ctx).size_names)


def observables(ctx: click.Context) -> Described:
    """The observables of the model, with their meaning."""
    return ((name, "an observable") for name in model_of(ctx).observables)


def settings(ctx: click.Context) -> Described:
    """The settings of the task, with their meaning."""
    from odesim.reference.tasks import load_task

    return ((setting.name, setting.doc) for setting in load_task(given(ctx, "task")).settings)


KINDS: dict[str, Callable[[click.Context], Described]] = {
    "params": params, "states": states, "sizes": sizes, "observables": observables, "settings": settings,
}  # fmt: skip
