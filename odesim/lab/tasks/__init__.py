"""Reference tasks by name, each imported when it is used: a file of this folder is a task, and no other list names it."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from odesim.base.errors import ParamError, no_such

if TYPE_CHECKING:
    from odesim.lab.training.task import Task

TASKS = tuple(sorted(module.name for module in iter_modules(__path__)))


def load_task(name: str) -> "Task":
    """The task with this name. Raises ParamError with the nearest spelling."""
    if name not in TASKS:
        raise ParamError(no_such("task", name, TASKS))
    return import_module(f"odesim.lab.tasks.{name}").TASK
