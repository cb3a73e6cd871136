"""Pictures on disk: whole or not at all, the same bytes for the same picture, a sentence for what cannot be."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import matplotlib
import pytest
from matplotlib.figure import Figure

from odesim.base.errors import StoreError
from odesim.plot.files import FORMATS, check_picture, save, write_atomically
from odesim.plot.style import DPI, WIDTH, new_figure, project_style

MAGIC = {"png": b"\x89PNG\r\n", "pdf": b"%PDF-1", "svg": b"<?xml"}


def picture() -> Figure:
    """A small figure in the project's style."""
    with project_style():
        figure = new_figure(30.0)
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1])
        axes.set_xlabel("t")
    return figure


@pytest.mark.parametrize("extension", [*FORMATS, "PNG"])
def test_save(tmp_path: Path, extension: str) -> None:
    """A picture is of the kind its name says, the same bytes each time, replaces an old one, and nothing else is left."""
    path = tmp_path / f"a.{extension}"
    path.write_text("old")
    path.chmod(0o644)
    assert save(picture(), path) == path
    first = path.read_bytes()
    assert first.startswith(MAGIC[extension.lower()])
    assert b"date" not in first.lower()  # of the two saves here it would be the same second
    save(picture(), str(path))
    assert path.read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_true_size(tmp_path: Path) -> None:
    """A png is WIDTH mm across at DPI."""
    header = save(picture(), tmp_path / "a.png").read_bytes()[16:24]
    assert int.from_bytes(header[:4]) == pytest.approx(WIDTH / 25.4 * DPI, abs=1)  # a whole number of dots


REFUSED = {
    "a.gif": "no picture format 'gif'; choose from html, pdf, png, svg",
    "a.pngg": "did you mean 'png'",
    "a": "has no extension, which chooses the format: write a.png, for example",
    ".png": "has no extension, which chooses the format: write picture.png, for example",
    "none/a.png": "no folder",
    "folder.png": "is a folder",
    "locked/a.png": "no permission",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is written; save() and check_picture() agree."""
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "locked").mkdir()

    def temporary(dir: Path) -> Any:
        """As of a user: root, who may run this, may write anywhere."""
        if dir.name == "locked":
            raise PermissionError
        return TemporaryFile(dir=dir)

    monkeypatch.setattr("odesim.store.paths.tempfile.TemporaryFile", temporary)
    before = sorted(tmp_path.rglob("*"))
    for attempt in (check_picture, lambda path: save(picture(), path)):
        with pytest.raises(StoreError) as caught:
            attempt(tmp_path / name)
        assert REFUSED[name] in str(caught.value)
        assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("extension", FORMATS)
def test_only_our_pictures_are_replaced(tmp_path: Path, extension: str) -> None:
    """A picture that odesim drew may be drawn again; any other file needs to be asked for."""
    path = tmp_path / f"a.{extension}"
    assert check_picture(save(picture(), path)) == path
    with project_style():
        picture().savefig(path)
    with pytest.raises(StoreError, match="odesim did not draw it"):
        check_picture(path)
    assert check_picture(path, overwrite=True) == path


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A disk that fills half way: a sentence, the old file untouched, no rest of the new one."""
    path = tmp_path / "a.png"
    path.write_text("old")

    def write(temporary: Path) -> None:
        temporary.write_text("ha")
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left on device"):
        write_atomically(path, write)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]


def test_nothing_global_is_left() -> None:
    """The style holds inside only: matplotlib's own settings are as they were."""
    before = dict(matplotlib.rcParams)
    with project_style():
        assert matplotlib.rcParams["font.size"] != before["font.size"]
    picture()
    assert dict(matplotlib.rcParams) == before
