"""Figures, each computed by a worker of a dask cluster, or one after another here."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from odesim.base.cluster import Cluster, Task
from odesim.base.errors import ClusterError, counted
from odesim.base.signals import stop_signals
from odesim.plot.figures import FigureRun, run_figure


def run_figures(
    names: Sequence[str], *, fast: bool = False, out: Path = Path(), formats: Sequence[str] = ("png",), cluster: Cluster | None = None
) -> Iterator[FigureRun]:
    """The FigureRun of each figure: on a cluster as they come to their end, here in their order.

    Raises StoreError for a name, format or folder that is none; ClusterError if a worker does not see the folder, or after an interrupt.
    """
    if cluster is None:
        yield from (run_figure(name, fast=fast, out=out, formats=formats) for name in names)
        return
    folder, done = out.absolute(), 0
    folder.mkdir(parents=True, exist_ok=True)
    tasks = (Task("figure", name, (name,)) for name in names)
    with stop_signals() as asked:
        for _, run in cluster.results(partial(run_there, fast, str(folder), tuple(formats)), tasks, asked):
            if unseen := [str(file) for file in run.files if not file.exists()]:
                raise ClusterError(f"a worker of the cluster wrote {unseen[0]} where this machine does not see it: share the folder")
            done += 1
            yield run
    if done < len(names):
        raise ClusterError(f"interrupted with {done} of {counted(len(names), 'figure')} made", stored=True)


def run_there(fast: bool, folder: str, formats: tuple[str, ...], name: str) -> FigureRun:
    """On a worker: makes a figure."""
    return run_figure(name, fast=fast, out=folder, formats=formats)
