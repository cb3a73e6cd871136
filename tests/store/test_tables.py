"""The table of a run as parquet is the one of csv, with types."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import odesim
from odesim.base.errors import StoreError
from odesim.cli import cli
from odesim.store.export import export_run
from tests.support.begun import SIZE


def stored(kind: str, folder: Path) -> Path:
    """An integration, or an ensemble of two chunks with parameters, observables and a member that blows up."""
    run = folder / "run.zarr"
    if kind == "integration":
        done = CliRunner().invoke(cli, ["integrate", "joma.nonlinear", "--size", "M=3", "--save", "9", "--out", str(run), "--quiet"])
        assert done.exit_code == 0, done.stderr
    else:
        options: dict[str, Any] = {"sizes": {"M": 2}, "span": (0, 1.2), "save": 3, "observe": "all", "max_events": 0}
        odesim.ensemble("joma.linear", grid={"Delta": "linspace(0.5,2,11)"}, out=run, **options)
    return run


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["integration", "ensemble"])
def test_parquet_is_csv_with_types(kind, tmp_path, small_chunks):
    """Every column and cell; pandas reads the digits of csv to a unit of the last place or two."""
    run = stored(kind, tmp_path)
    table = pd.read_parquet(export_run(run, "parquet", tmp_path / "a.parquet"))
    text = pd.read_csv(export_run(run, "csv", tmp_path / "a.csv"))
    assert list(table.columns) == list(text.columns)
    for name in table:
        if table[name].dtype == float:
            np.testing.assert_allclose(table[name].to_numpy(), text[name].to_numpy(), rtol=1e-15, atol=0)
        else:
            assert table[name].tolist() == text[name].tolist()
    assert {str(kind) for kind in table.dtypes} <= {"float64", "int64", "object", "str"}
    if kind == "ensemble":
        assert len(table) == 33 > SIZE and set(table["status"]) > {"ok"}


def test_without_pyarrow_one_sentence(tmp_path, monkeypatch):
    """It says what to install; nothing is written."""
    run = stored("integration", tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match=r"pip install 'odesim\[parquet\]'"):
        export_run(run, "parquet", tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()
