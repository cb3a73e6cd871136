"""Output of `odesim train TASK --settings`: a task's settings, models and observables, in 80 columns."""

from collections.abc import Mapping
from typing import Any

from odesim.cli.tables import GLUE, number_text, table, wrap_paragraph
from odesim.comparison.pairs import PAIRS
from odesim.reference.protocols import Experiment, Observable, Setting, Task
from odesim.reference.settings import check_settings
from odesim.reference.training.record import MAX_RECORDED_ENTRIES


def settings_text(task: Task) -> str:
    """The description of a task: settings with defaults and ranges, models with observables, Systems that describe it."""
    rows = [(s.name, default_text(s), f"{s.doc}{range_text(s)}") for s in task.settings]
    parts = [f"{task.name}\n{wrap_paragraph(task.doc, '  ')}", f"settings\n{table(rows, ('', 'default', ''))}"]
    defaults = check_settings(task.name, task.settings, {})
    parts += [model_text(task.make(defaults, seeds=(0,), model=name), name, name == task.models[0]) for name in task.models]
    systems = [(system, example_options(pair.example)) for (system, task_name), pair in PAIRS.items() if task_name == task.name]
    parts += [f"described by (odesim compare)\n{table(systems)}"] * bool(systems)
    return "\n".join(parts)


def model_text(experiment: Experiment, name: str, first: bool) -> str:
    """The description of a model: default steps, optimizer, groups of learning rates, observables. first: it is the default."""
    spec = experiment.optimizer
    rates = ", ".join(f"{group}{GLUE}{number_text(rate)}" for group, rate in spec.rates.items())
    run = [("steps", str(experiment.steps)), ("optimizer", spec.name), ("rates", f"{rates} (--lr GROUP=RATE)")]
    seen = [observable_row(o) for o in experiment.model.observables]
    more = (
        f"  (at the end: kept at the end only, as is what has more than {MAX_RECORDED_ENTRIES}\n  entries; all along with --observe NAME)"
    )
    head = f"model {name}{', the default' if first else f' (--model {name})'}"
    return f"{head}\n{table(run)}\nobservables of {name}\n{table([('loss', 'of the batch of the iteration'), *seen])}\n{more}"


def observable_row(observable: Observable) -> tuple[str, str]:
    """A table row of an observable: name with axes, and description."""
    axes = f" ({', '.join(observable.dims)})" if observable.dims else ""
    return f"{observable.name}{axes}", observable.doc + ("; at the end" if observable.costly else "")


def example_options(example: Mapping[str, Any]) -> str:
    """The settings of an example as command-line options."""
    return " ".join(f"--set{GLUE}{name}={value}" for name, value in example.items()) or "with the default settings"


def default_text(setting: Setting) -> str:
    """The default of a setting as text; `-` if there is none."""
    value = setting.default
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else value or "-"


def range_text(setting: Setting) -> str:
    """The allowed words or range of a setting as text in brackets; empty if there are no limits."""
    if setting.choices:
        return f" ({', '.join(setting.choices)})"
    low = "" if setting.low is None else f"above {setting.low:g}" if setting.open_low else f"at least {setting.low:g}"
    high = "" if setting.high is None else f"at most {setting.high:g}"
    limits = ", ".join(filter(None, (low, high)))
    return f" ({limits})" if limits else ""
