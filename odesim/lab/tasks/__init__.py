"""Reference tasks by name, each imported when it is used."""

from importlib import import_module
from typing import TYPE_CHECKING

from odesim.base.errors import ParamError, no_such

if TYPE_CHECKING:
    from odesim.lab.training.protocols import Task


TASKS = (
    "committee",
    "corpus",
    "dyck",
    "hierarchy_dag",
    "hierarchy_layers",
    "hierarchy_tree",
    "induction",
    "joma_gaussian",
    "joma_regression",
    "markov",
    "reversal",
    "scan_snap",
    "topics",
)


def load_task(name: str) -> "Task":
    """The task with this name. Raises ParamError with the nearest spelling."""
    if name not in TASKS:
        raise ParamError(no_such("task", name, TASKS))
    task: Task = import_module(f"odesim.lab.tasks.{name}").TASK
    return task
