"""Figures made by workers of a dask cluster: the files that one process writes."""

from types import SimpleNamespace

import pytest
import xarray as xr
from matplotlib.figure import Figure

from odesim.api.cluster import run_figures
from odesim.base.cluster import Cluster
from odesim.base.errors import ClusterError, StoreError
from odesim.plot.figures import Feature
from tests.support.clusters import two_workers

pytest.importorskip("distributed", reason="the extra cluster is not installed")
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def figures(monkeypatch):
    """Three figures of a single number, in place of those that take seconds."""

    def load(name):
        if name not in NAMES:
            raise StoreError(f"no figure {name}")
        number = float(NAMES.index(name))
        return SimpleNamespace(
            __doc__=name,
            QUESTION="why plateaus?",
            data=lambda fast: xr.Dataset({"x": number}),
            expected=lambda dataset: [Feature("x", float(dataset.x), 1.0, 0.5)],
            draw=lambda dataset: Figure(),
        )

    monkeypatch.setattr("odesim.plot.figures.load_figure", load)


def test_the_files_of_one_machine(figures, client, tmp_path):
    """Each figure once, with the features and the files that it has without a cluster."""
    here = {run.name: run for run in run_figures(NAMES, out=tmp_path / "here")}
    there = {run.name: run for run in run_figures(NAMES, out=tmp_path / "there", cluster=Cluster(client))}
    assert here.keys() == there.keys() == set(NAMES)
    for name, run in there.items():
        assert run.features == here[name].features and run.passed == (name == "two")
        assert [f.name for f in run.files] == [f.name for f in here[name].files]
        for mine, other in zip(run.files, here[name].files, strict=True):
            assert mine.read_bytes() == other.read_bytes()


def test_what_goes_wrong_there(figures, client, tmp_path, monkeypatch):
    """A figure that is none, and files that only the worker sees: one sentence each."""
    with pytest.raises(StoreError, match="no figure four"):
        list(run_figures(["one", "four"], out=tmp_path, cluster=Cluster(client)))
    monkeypatch.setattr("odesim.api.cluster.run_figure", lambda name, **how: SimpleNamespace(name=name, files=[tmp_path / "gone"]))
    with pytest.raises(ClusterError, match="where this machine does not see it"):
        list(run_figures(["one"], out=tmp_path, cluster=Cluster(client)))
