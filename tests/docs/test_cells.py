"""A page whose cell fails ends the build with the cell and its error, from a process of its own too."""

import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---

# Page

```{code-cell}
numerator = 2
numerator / 0
```
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_failed_cell_is_named_with_its_error(processes, tmp_path):
    """As docs/conf.py executes pages: the text of the cell and the error stand on stderr, not in a file alone."""
    pytest.importorskip("myst_nb", reason="the extra docs is not installed")
    conf = (Path(__file__).parents[2] / "docs" / "conf.py").read_text()
    assert '    "cells",\n' in conf
    settings = [line for line in conf.splitlines() if line.startswith("nb_")]
    (tmp_path / "conf.py").write_text("\n".join(["extensions = ['myst_nb', 'cells']", *settings]))
    (tmp_path / "index.md").write_text(PAGE)
    extensions = str(Path(__file__).parents[2] / "docs" / "_ext")
    command = [sys.executable, "-m", "sphinx", "-W", "-j", processes, str(tmp_path), str(tmp_path / "out")]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # of the kernel
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": extensions, "PATH": path})
    assert done.returncode == 2 and "numerator / 0\n" in done.stderr and "division by zero" in done.stderr, done.stderr


def test_kernels_have_time_to_start(monkeypatch):
    """As long as those of notebooks: of 60 s, the default, a busy machine may need more."""
    utils = pytest.importorskip("jupyter_cache.executors.utils", reason="the extra docs is not installed")
    from nbclient import NotebookClient
    from nbformat.v4 import new_notebook

    times = []
    monkeypatch.setattr(NotebookClient, "execute", lambda client, **_: times.append(client.startup_timeout))
    monkeypatch.setattr(utils, "executenb", utils.executenb)  # as it was, at the end
    run_path(str(Path(__file__).parents[2] / "docs" / "_ext" / "cells.py"))["setup"](None)
    utils.single_nb_execution(new_notebook(), cwd=None, timeout=None, allow_errors=False)
    assert times == [600]
