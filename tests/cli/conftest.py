"""The command line run in this process, in a folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from odesim.cli import cli


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    yield tmp_path


@pytest.fixture
def odesim(folder) -> Callable[..., Result]:
    """odesim("integrate", "x", ...) -> Result with exit_code, stdout, stderr."""

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(cli, [str(a) for a in arguments])

    return run
