"""Shell completion of names: of the model, the task or the stored run that a command has, and of words of an option."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from odesim.symbolic import System

Complete = Callable[[click.Context, click.Parameter, str], list[Any]]
Described = Iterator[tuple[str, str]]
Names = Callable[[click.Context], Described]


def completed(*kinds: str | Names, ending: str = "=") -> Complete:
    """A shell_complete function for names of these kinds, each with `ending`: a kind is a name in KINDS, or a function.

    It offers nothing where the model is a file, which would be executed, and where anything is wrong: a shell shows no errors.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        try:
            found = [pair for kind in kinds for pair in (KINDS[kind] if isinstance(kind, str) else kind)(ctx)]
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

    name = str(ctx.params.get("first") or given(ctx, "model"))
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


def stored(ctx: click.Context) -> Described:
    """The states and observables of a stored run."""
    said = stored_attributes(ctx)
    return ((name, kind) for key, kind in (("states", "a state"), ("observables", "an observable")) for name in said.get(key, ()))


def varied(ctx: click.Context) -> Described:
    """Names of the numbers that differ between the members of a stored ensemble, and time."""
    return ((name, "differs between members" * (name != "time")) for name in (*stored_attributes(ctx).get("labels", {}), "time"))


def stored_attributes(ctx: click.Context) -> dict[str, Any]:
    """The attributes of the stored run of the command."""
    from odesim.store.inspected import inspect_run

    return inspect_run(given(ctx, "run")).attributes


def words(*known: str) -> Complete:
    """A shell_complete function for one of these words."""
    return lambda ctx, param, incomplete: [word for word in known if word.startswith(incomplete)]


KINDS: dict[str, Names] = {
    "params": params, "states": states, "sizes": sizes, "observables": observables, "stored": stored, "varied": varied,
}  # fmt: skip
