"""Ensembles in an object store: the bits of those in a folder, from here and from the workers of a cluster."""

from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import odesim
from odesim.api.rerun import rerun_ensemble
from odesim.api.stored import resume, stored_run
from odesim.base.cluster import Cluster
from odesim.base.errors import ParamError, StoreError
from odesim.cli.app import cli
from odesim.run.chunks import Execution
from odesim.store.remote import RemotePath, as_place
from tests.support.begun import COUNT, MODEL, RUN, SIZE, memory, same
from tests.support.clusters import two_workers

pytest.importorskip("s3fs", reason="the extra s3 is not installed")
BUCKET = "s3://odesim-tests"


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def server():
    """A server on this machine that answers as Amazon S3 does, named by the environment as s3fs reads it."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    start = Thread(target=server.start, daemon=True)
    start.start()
    start.join(120)  # it waits for ever for a server that has failed
    assert not start.is_alive()
    host, port = server.get_host_and_port()
    names = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/nowhere",
        "NO_PROXY": host,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**names, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}.items():
            patch.setenv(name, value)
        yield server
    server.stop()


@pytest.fixture
def bucket(server, tmp_path):
    """An empty bucket there."""
    url = f"{BUCKET}-{tmp_path.name.replace('_', '-').lower()}"[:60]
    RemotePath(url).place()[0].mkdir(url)
    return url


CASES: dict[str, dict[str, Any]] = {
    "random": {"members": SIZE + 3},
    "arrays": {"vary": {}, "members": None, "params": {"mu": np.linspace(0.5, 2.5, 40).reshape(20, 2)}},
    "grid": {"vary": {}, "members": None, "grid": {"mu": "linspace(0.5,2,5)"}, "zipped": {"v": "0.01,0.02"}},
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", CASES)
def test_in_a_bucket_as_in_memory(case, bucket, client, small_chunks):
    """Written by the workers of a cluster: every bit is the one in memory; computed again it is the same."""
    out = f"{bucket}/run.zarr"
    stored = odesim.ensemble(MODEL, out=out, client=client, **{**RUN, **CASES[case]})
    same(stored, memory(**CASES[case]))
    assert rerun_ensemble(as_place(out)).same


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t_end", "status", "v"])
def test_what_is_lost_is_computed_again(name, bucket, client, small_chunks):
    """A shard, then resume on a cluster; then an object is lost: it is noticed, and computed again."""
    place = as_place(out := f"{bucket}/run.zarr")
    odesim.ensemble(MODEL, out=out, shard=(1, 2), **RUN)
    assert 0 < stored_run(place).tally.done < COUNT
    assert resume(place, execution=Execution(cluster=Cluster(client))).status == "ok"
    (file,) = [key for key in place.sizes() if key.startswith(f"{name}/c/1")]  # type: ignore[attr-defined]
    (place / file).delete()  # type: ignore[attr-defined]
    if name != "status":
        assert stored_run(place).lost == SIZE
        with pytest.raises(StoreError, match=f"lacks files of {SIZE} finished members: odesim resume computes them again"):
            odesim.open_run(out)
    found = resume(place)
    assert (found.status, found.tally.new) == ("ok", SIZE)
    same(odesim.open_run(out), memory())


@pytest.mark.slow
def test_what_is_there(bucket, small_chunks):
    """A run that is there is refused, joined only by the same request, and replaced where that is asked for."""
    out = f"{bucket}/run.zarr"
    odesim.ensemble(MODEL, out=out, **RUN)
    with pytest.raises(StoreError, match="is there; give another name or --overwrite"):
        odesim.ensemble(MODEL, out=out, **RUN)
    with pytest.raises(ParamError, match="holds another ensemble: its seed differs"):
        odesim.ensemble(MODEL, out=out, resume=True, **{**RUN, "seed": 6})
    stored = odesim.ensemble(MODEL, out=out, overwrite=True, **{**RUN, "seed": 6, "members": 3})
    same(stored, memory(seed=6, members=3))
    (as_place(bucket) / "other" / "x").parent.write({"x": b"1"})  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="is not a run of odesim"):
        odesim.ensemble(MODEL, out=f"{bucket}/other", overwrite=True, **RUN)


@pytest.mark.slow
def test_drawn_and_exported_as_from_a_folder(bucket, tmp_path, monkeypatch, small_chunks):
    """plot and export take the URL of a run; what they write by default has its name, in the current folder."""
    monkeypatch.chdir(tmp_path)
    cases = {"run.csv": ("export", "--to", "csv"), "run.nc": ("export", "--to", "nc"), "run.png": ("plot",)}
    cases["film.gif"] = ("plot", "--animate", "film.gif", "--x", "mu[0]", "--index", "1", "--quiet")
    written = []
    for run in (f"{bucket}/run.zarr", "run.zarr"):
        odesim.ensemble(MODEL, out=run, **RUN)
        for made, words in cases.items():
            done = CliRunner().invoke(cli, [*words, run])
            assert done.exit_code == 0, done.output
            written.append(Path(made).read_bytes())
            Path(made).unlink()
    assert written[: len(cases)] == written[len(cases) :]


def test_what_is_not_there(bucket, small_chunks):
    """No such bucket, run or kind of URL, one sentence each."""
    with pytest.raises(StoreError, match=f"no run {bucket}/absent.zarr"):
        odesim.open_run(f"{bucket}/absent.zarr")
    for out, what in (
        (f"{BUCKET}-absent/run.zarr", "cannot write into .*bucket does not exist"),
        ("nothing://x/run.zarr", "no runs are stored at nothing://"),
    ):
        with pytest.raises(StoreError, match=what):
            odesim.ensemble(MODEL, out=out, **RUN)


NO_STORES = "asyncwrapper blockcache cached dir filecache generic jlab nothing reference simplecache tar zip"


@pytest.mark.parametrize("scheme", NO_STORES.split())
def test_schemes_for_what_is_no_store(scheme, tmp_path, monkeypatch):
    """Of archives, caches and what stands around another filesystem fsspec speaks in terms of its classes and files: not so odesim."""
    monkeypatch.chdir(tmp_path)
    for url in (f"{scheme}://x", f"{scheme}:///x", f"no::{scheme}://x"):
        with pytest.raises(StoreError, match=r"no runs are stored at .*://, but at a URL such as s3://BUCKET/RUN\.zarr"):
            odesim.open_run(url)


@pytest.mark.parametrize("url", ["s3://", "s3:///", "memory://", "file://"])
def test_a_url_of_nothing(url):
    """It is said as it was typed, with one that names a run."""
    with pytest.raises(StoreError, match=rf"^{url} names no run: give its URL, such as s3://BUCKET/RUN\.zarr$"):
        odesim.open_run(url)
