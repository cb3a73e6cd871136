"""--cluster on the command line: the results of one machine, and one sentence for what cannot be."""

from contextlib import nullcontext

import pytest

from odesim.base.cluster import Cluster
from odesim.base.errors import ClusterError
from tests.support.begun import same
from tests.support.clusters import two_workers

pytest.importorskip("distributed", reason="the extra cluster is not installed")
ENSEMBLE = (
    "ensemble",
    "joma.nonlinear",
    "--vary",
    "mu=uniform(0.5,2.5)",
    "--members",
    "20",
    "--size",
    "M=2",
    "--span",
    "0:2",
    "--save",
    "3",
    "--quiet",
)
THERE = ("--cluster", "tcp://127.0.0.1:1")


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def connected(client, monkeypatch):
    """Every address is that of a cluster in this process."""
    monkeypatch.setattr("odesim.base.cluster.connected", lambda address: nullcontext(Cluster(client) if address else None))


def test_an_ensemble(odesim, connected, folder):
    """ensemble and resume on a cluster: the members of one machine."""
    import odesim as library

    assert odesim(*ENSEMBLE, "--out", "here.zarr").exit_code == 0
    done = odesim(*ENSEMBLE, "--out", "there.zarr", "--shard", "1/1", *THERE)
    assert done.exit_code == 0, done.output
    assert odesim("resume", "there.zarr", "--quiet", *THERE).exit_code == 0
    same(library.open_run("there.zarr"), library.open_run("here.zarr"))


WRONG = {
    "address": ((*ENSEMBLE, "--out", "run.zarr", "--cluster", "here"), "local:N, not 'here'"),
    "number": ((*ENSEMBLE, "--out", "run.zarr", "--cluster", "local:0"), "1 to 1024"),
    "no out": ((*ENSEMBLE, "--plot", "x.png", *THERE), "--cluster needs the run that all workers share: --out RUN.zarr"),
    "threads": ((*ENSEMBLE, "--out", "run.zarr", "--threads", "2", *THERE), "threads of their own"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be(case, odesim, connected, folder):
    """Exit code 2, one sentence, nothing written."""
    words, sentence = WRONG[case]
    done = odesim(*words)
    assert (done.exit_code, done.stdout) == (2, "") and sentence in done.stderr and done.stderr.count("\n") == 1, done.output
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("stored", "code"), [(True, 3), (False, 2)])
def test_a_cluster_that_is_gone(stored, code, odesim, folder, monkeypatch):
    """3 where what was computed is kept, else 2."""

    def lost(address):
        raise ClusterError("it is gone", stored=stored)

    monkeypatch.setattr("odesim.base.cluster.connected", lost)
    done = odesim(*ENSEMBLE, "--out", "run.zarr", *THERE)
    assert (done.exit_code, done.stderr) == (code, "odesim: it is gone\n")
