"""Animations: every frame shows the values of its time on one scale; a file is complete or absent; a sentence for what cannot be."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d  # type: ignore[import-untyped]
from PIL import Image

from odesim.base.errors import OdesimError
from odesim.plot import animate
from odesim.plot.film import FRAMES, film_of
from odesim.plot.frames import BARS, make_frames
from odesim.plot.strips import in_view
from odesim.plot.trajectory import MOST
from tests.plot.test_trajectory import run
from tests.support.texts import clashes, drawn_texts

T = np.linspace(0.0, 5.0, 6)
RNG = np.random.default_rng(0)
DIMS = {"v": ("m",), "wide": ("m",), "V": ("l", "k"), "circle": ("i", "x"), "sphere": ("i", "x")}


def unit(*shape: int) -> Any:
    """Random vectors of length 1."""
    x = RNG.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


ARRAYS = {
    "v": RNG.normal(size=(6, 4)),
    "wide": RNG.normal(size=(6, BARS + 1)),
    "V": RNG.normal(size=(6, 3, 5)),
    "circle": unit(6, 4, 2),
    "sphere": unit(6, 4, 3),
}


def solution(arrays: Any = ARRAYS, t: Any = T) -> Any:
    """A stand-in with the attributes of a Solution that an animation needs."""
    return SimpleNamespace(model="demo.model", method="tsit5", t=t, y=arrays, observables={}, dims=DIMS, attrs={"time_unit": "s"})


def shown(axes: Any, name: str) -> Any:
    """The values that a frame shows."""
    if name == "v":
        return [bar.get_height() for bar in axes.patches]
    if name == "V":
        return np.asarray(next(mesh for mesh in axes.collections if isinstance(mesh, QuadMesh)).get_array())
    return axes.lines[-1].get_ydata() if name == "wide" else np.asarray(axes.collections[0].get_offsets())


@pytest.mark.parametrize("name", ARRAYS)
def test_a_frame_shows_its_time(name):
    """Values to the bit, the time in words; the scale of values and the place of the panel are those of every other frame."""
    film = film_of(solution(), name)
    figure, show = make_frames(film)
    axes, scales = figure.axes[0], set()
    for k in (4, 0, 5):
        show(k)
        np.testing.assert_array_equal(shown(axes, name), in_view(ARRAYS[name])[0][k] if name == "sphere" else ARRAYS[name][k])
        assert figure.texts[-1].get_text().splitlines()[-1] == f"$t$ = {k} (s)"
        assert name == "sphere" or clashes(figure, drawn_texts(figure)) == []  # a sphere's axes are not drawn
        mesh: list[Any] = [mesh.get_clim() for mesh in axes.collections if isinstance(mesh, QuadMesh)]
        scales.add((axes.get_ylim(), axes.get_position().bounds, *mesh))
    assert len(scales) == 1


WORDS = {"c_1": [f"word{i}" for i in range(90)], "c_0": ["one", "two", "three"]}


def test_attention_to_words_is_what_a_training_shows():
    """Without a name it is c, the mean over seeds; the columns are the words with most attention at any time."""
    training = run(100, 2, 0.1, x=(4,), c=(3, 90))
    training.attrs["labels"] = WORDS
    film = film_of(training)
    assert (film.name, film.kind, film.unit) == ("c", "matrix", "iterations")
    np.testing.assert_allclose(film.values, training.c.values.mean(axis=0), rtol=1e-15)  # the same operations
    figure, show = make_frames(film)
    words = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    columns = [int(word.removeprefix("word")) for word in words]
    assert set(columns) == set(np.argsort(-np.abs(film.values).max(axis=(0, 1)))[: len(columns)].tolist())
    show(7)
    np.testing.assert_array_equal(shown(figure.axes[0], "V"), film.values[7][:, columns])


def test_what_a_film_does_not_show_is_said():
    """The seeds whose mean it is, how many columns are left out, numbers that are not finite: no bar of height 0 stands for them."""
    training = run(100, 2, 0.1, x=(4,), c=(3, 90))
    training.attrs["labels"] = WORDS
    figure, _ = make_frames(film_of(training))
    assert [text.get_text().splitlines()[0] for text in figure.texts] == [
        "some_task (net), mean of 2 seeds",
        f"columns: the top {MOST[1]} of 90",
    ]
    figure, show = make_frames(film_of(solution({"v": np.where(np.arange(24).reshape(6, 4) == 13, np.nan, ARRAYS["v"])})))
    show(3)
    crosses: Any = figure.axes[0].lines[-1]
    assert np.isnan(shown(figure.axes[0], "v")).tolist() == [False, True, False, False]
    assert np.transpose(crosses.get_data()).tolist() == [[1.0, 0.0]]
    assert figure.texts[-1].get_text().startswith("×: no finite value\n")


def test_rows_have_their_names_without_those_of_columns():
    training = run(100, 1, 0.1, c=(3, 5))
    training.attrs["labels"] = {"c_0": WORDS["c_0"]}
    figure, _ = make_frames(film_of(training))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == WORDS["c_0"]


def test_a_training_may_record_y():
    """A Dataset has its variables as attributes: one that is called y makes no Solution of it."""
    film = film_of(run(100, 2, 0.1, y=(4,)))
    assert (film.name, film.unit, film.values.shape[1:]) == ("y", "iterations", (4,))


def test_axes_of_one_place_are_left_out():
    """The attention of a single head is a matrix; a single point on a circle stays a point, a single component a vector."""
    arrays = {
        "heads": RNG.normal(size=(6, 3, 3, 1)),
        "row": RNG.normal(size=(6, 1, 4)),
        "point": unit(6, 1, 2),
        "one": RNG.normal(size=(6, 1)),
    }
    films = {name: film_of(solution(arrays), name) for name in arrays}
    assert {name: (film.kind, film.values.shape[1:]) for name, film in films.items()} == {
        "heads": ("matrix", (3, 3)),
        "row": ("vector", (4,)),
        "point": ("points", (1, 2)),
        "one": ("vector", (1,)),
    }
    np.testing.assert_array_equal(films["heads"].values, arrays["heads"][..., 0])


def test_angles_of_a_view_are_points():
    """At (cos, sin) on the circle, with axes that say so; without that view angles are bars."""
    angles = {"v": RNG.normal(size=(6, 4))}
    run = solution(angles)
    assert film_of(run).kind == "vector"
    run.attrs = run.attrs | {"views": {"v": "Points"}}
    figure, show = make_frames(film_of(run))
    show(3)
    seen = np.asarray(figure.axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(seen, np.stack([np.cos(angles["v"][3]), np.sin(angles["v"][3])], axis=1), rtol=1e-12)  # rounding
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("cos $v$", "sin $v$")


@pytest.mark.parametrize(("views", "name"), [({}, "c"), ({"sphere": "Points"}, "sphere"), ({"elsewhere": "Points"}, "c")])
def test_what_a_model_shows_as_points_is_animated(views, name):
    """Before attention, which is soon of one colour where tokens come together; a view of what is not stored changes nothing."""
    run = solution({"c": RNG.random((6, 4, 3)), "sphere": solution().y["sphere"]})
    run.attrs = run.attrs | {"views": views}
    assert film_of(run).name == name


def test_points_of_a_sphere_are_seen_from_one_side():
    """As matplotlib's own axes of space have them, without perspective; those farther than the centre are pale."""
    figure, show = make_frames(film_of(solution(), "sphere"))
    show(2)
    dots = figure.axes[0].collections[0]
    space: Any = Figure().add_subplot(projection="3d", proj_type="ortho", xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1), box_aspect=(1, 1, 1))
    centre, *every = [proj3d.proj_transform(*point, space.get_proj()) for point in ((0, 0, 0), *ARRAYS["sphere"][2])]
    places, seen = np.subtract(every, centre).astype(float), np.asarray(dots.get_offsets())
    scale = np.linalg.norm(seen) / np.linalg.norm(places[:, :2])
    np.testing.assert_allclose(scale * places[:, :2], seen, rtol=0, atol=1e-12)  # rounding
    near = np.asarray(dots.get_alpha()) == 1
    np.testing.assert_array_equal(near, places[:, 2] <= 0)
    assert 0 < near.sum() < len(near)


@pytest.mark.first(1)
@pytest.mark.parametrize("fps", [30, 60])
def test_a_gif_has_its_time(tmp_path, fps):
    """Frames last 1/fps but for the hundredths of a second that gifs have, and no less than the 20 ms below which browsers take 100."""
    with Image.open(animate(solution({"v": ARRAYS["v"][:2]}, T[:2]), tmp_path / "v.gif", fps=fps)) as gif:
        duration = gif.info["duration"]
    assert duration >= 20 and duration == pytest.approx(1000 / fps, abs=5 if fps < 50 else 10)


def test_many_times_are_thinned():
    """Evenly, with the first and the last."""
    t = np.linspace(0, 1, 1001)
    film = film_of(solution({"v": np.outer(t, np.ones(3))}, t))
    assert len(film.t) == FRAMES and (film.t[0], film.t[-1]) == (0.0, 1.0)
    assert np.ptp(np.diff(film.t)) < 0.0011  # one saved time


@pytest.mark.slow
def test_a_gif_has_every_frame(tmp_path):
    """Six times and the end held; progress counts to the end; the file may be replaced, another one only if asked."""
    counted: list[tuple[int, int]] = []
    path = animate(solution(), tmp_path / "v.gif", var="v", fps=5, progress=lambda done, all: counted.append((done, all)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.gif"] and counted[-1] == (8, 8)
    assert path.read_bytes().count(b"\x21\xf9\x04") == 6  # heads of frames; what is the same is one frame, held longer
    animate(solution(), path, var="v", fps=5)
    path.write_bytes(b"GIF89a of another program")
    with pytest.raises(OdesimError, match=r"odesim did not draw it"):
        animate(solution(), path, var="v")
    animate(solution(), path, var="v", overwrite=True)


def test_stopped_is_absent(tmp_path):
    """What stops in the middle leaves no file, and the old one as it was."""

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    for path in (tmp_path / "v.gif", animate(solution(), tmp_path / "old.gif", var="v")):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(KeyboardInterrupt):
            animate(solution(), path, var="V", progress=stop)
        assert (path.read_bytes() if path.exists() else None) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.gif"]


@pytest.mark.parametrize("code", [0, 1])
def test_mp4_by_ffmpeg(tmp_path, monkeypatch, code):
    """ffmpeg gets every frame as raw dots; where it fails the file is absent. Here it is a script that keeps what it gets."""
    program = tmp_path / "ffmpeg"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncat > "$last"\nprintf odesim >> "$last"\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "v.mp4"
    if code:
        with pytest.raises(OdesimError, match=r"ffmpeg ended with code 1; a \.gif needs no ffmpeg"):
            animate(solution(), path, var="v", fps=5)
        assert not path.exists()
    else:
        size = len(animate(solution(), path, var="v", fps=5).read_bytes()) - len("odesim")
        assert size % (8 * 4) == 0 and size / 8 > 400 * 400 * 4  # six times and the end held, four bytes a dot
    assert {entry.name for entry in tmp_path.iterdir()} <= {"ffmpeg", "v.mp4"}


ENDS: dict[str, Any] = {"model": "demo.model", "observables": {}, "dims": {}, "attrs": {}}
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no ffmpeg": (solution(), {"path": "v.mp4"}, "an mp4 needs the program ffmpeg, which is not here; a gif does not"),
    "format": (solution(), {"path": "v.png"}, "no picture format 'png'; choose from gif, mp4"),
    "name": (solution(), {"var": "circl"}, "no array 'circl' in demo.model; choose from V, circle, sphere, v, wide; did you mean 'circle'"),
    "numbers": (solution({"x": T}), {}, "demo.model has no array with times to animate"),
    "a number": (solution({"x": T, "v": ARRAYS["v"]}), {"var": "x"}, "x is a number at each time; vectors and matrices can be animated: v"),
    "one time": (solution({"v": ARRAYS["v"][:1]}, T[:1]), {}, "demo.model has 1 saved time"),
    "fps": (solution(), {"fps": 0}, "fps must be a whole number from 1 to 60, not 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """One sentence, and nothing is written."""
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    given, options, sentence = REFUSED[case]
    with pytest.raises(OdesimError, match=re.escape(sentence)):
        animate(given, **{"path": "v.gif"} | options | {"path": tmp_path / options.get("path", "v.gif")})
    assert not list(tmp_path.iterdir())
