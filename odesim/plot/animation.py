"""Animations of arrays along a run: mp4 by ffmpeg, gif by pillow."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter

from odesim.base.errors import ParamError, StoreError, value_text
from odesim.plot.choice import Choice
from odesim.plot.datasets import as_members, as_solution
from odesim.plot.ensemble_film import MemberFilm, film_of_members
from odesim.plot.files import MOVING, check_picture, write_atomically
from odesim.plot.film import Film, film_of, read_run
from odesim.plot.frames import make_frames
from odesim.plot.style import project_style

DPI = 200  # 630 dots across
MARK = "odesim"  # in the file's comment: such a file may be replaced
MOST = 60  # frames a second
SHORTEST = 20  # ms of a frame of a gif, whose times are whole hundredths of a second: browsers show a shorter one for 100 ms


def animate(
    run: Any,
    path: str | Path,
    *,
    var: str = "",
    choice: Choice | None = None,
    fps: int = 20,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Draws an array of a run along its time as a film, path: .mp4 (needs ffmpeg) or .gif; returns path.

    run: a Solution, a Trajectory, an ensemble Dataset, or a stored run's folder; of several seeds the mean. var: the array's name; default
    attention, or the first one. A vector is drawn as bars or, above 40 components, as a line; a matrix as an image; unit vectors of 2 or
    3 components, a matrix of them, as points on a circle or sphere; a component of an ensemble as a curve over the number that varies, or
    as a map over two. choice: in the place of var, with the component, the axes and the scales of an ensemble. Saved times beyond 200 are
    thinned evenly. fps: frames a second, of a gif at most 50. The file is complete or absent; an animation that odesim made is replaced,
    another file with overwrite. progress: called with frames done and all.
    Raises StoreError and ParamError, in a sentence.
    """
    if isinstance(fps, bool) or not isinstance(fps, int) or not 1 <= fps <= MOST:
        raise ParamError(f"fps must be a whole number from 1 to {MOST}, not {fps!r}")
    target = check_animation(path, overwrite=overwrite)
    film = film_of_run(run, choice or Choice((var,) if var else ()))
    with project_style():
        figure, show = make_frames(film)
        count, hold = len(film.t), fps // 2  # the end is held for half a second

        def write(temporary: Path) -> None:
            writer = make_writer(target, fps)
            with writer.saving(figure, str(temporary), DPI):
                for frame in range(count + hold):
                    show(min(frame, count - 1))
                    writer.grab_frame()
                    if progress:
                        progress(frame + 1, count + hold)

        try:
            write_atomically(target, write)
        except CalledProcessError as error:
            raise StoreError(f"cannot write {str(target)!r}: ffmpeg ended with code {error.returncode}; a .gif needs no ffmpeg") from error
    return target


def film_of_run(run: Any, choice: Choice) -> Film | MemberFilm:
    """The film of a run of any kind. Raises StoreError and ParamError."""
    from odesim.store.remote import RemotePath, as_place

    if isinstance(run, str | PathLike | RemotePath):
        from odesim.store.read import open_run
        from odesim.store.schema import run_kind

        path = as_place(run)
        run = open_run(path) if run_kind(path) == "ensemble" else read_run(path)
    kind = run_kind_of(run)
    if kind == "ensemble":
        return film_of_members(as_members(run), choice)
    for name, value in (("x", choice.x), ("y", choice.y), ("at", choice.at), ("index", choice.index), ("log", choice.log)):
        if value is not None:
            raise ParamError(f"{name} of a film is for ensembles, and the run is of one system")
    if len(choice.var) > 1:
        raise ParamError(f"a film shows one array, and var has {len(choice.var)}: {', '.join(choice.var)}")
    return film_of(as_solution(run) if kind == "integration" else run, choice.var[0] if choice.var else "")


def run_kind_of(run: Any) -> str:
    """`solution`, `trajectory`, or of a Dataset `ensemble`, `training` or `integration`. Raises ParamError for anything else."""
    if not hasattr(run, "data_vars") and (hasattr(run, "y") or hasattr(run, "final")):
        return "solution" if hasattr(run, "y") else "trajectory"
    attributes = getattr(run, "attrs", {})
    for key, kind in (("status_names", "ensemble"), ("task", "training"), ("states", "integration")):
        if key in attributes:
            return kind
    raise ParamError(f"a film is of a Solution, a Trajectory, a Dataset of odesim, or the folder of a run, not of {value_text(run)}")


def check_animation(path: str | Path, *, overwrite: bool = False) -> Path:
    """path as a Path, if an animation can be written there. Raises StoreError, also if it is an mp4 and there is no ffmpeg."""
    target = check_picture(path, overwrite=overwrite, formats=MOVING)
    with project_style():
        lacking = target.suffix.lower() == ".mp4" and not FFMpegWriter.isAvailable()
    if lacking:
        raise StoreError(f"an mp4 needs the program ffmpeg, which is not here; a gif does not: {str(target.with_suffix('.gif'))!r}")
    return target


def make_writer(target: Path, fps: int) -> AbstractMovieWriter:
    """matplotlib's writer for the extension of target."""
    return MarkedPillowWriter(fps=fps) if target.suffix.lower() == ".gif" else FFMpegWriter(fps=fps, metadata={"comment": MARK})


class MarkedPillowWriter(PillowWriter):
    """matplotlib's writer of gifs, with a comment in the file."""

    def finish(self) -> None:
        """Writes the file."""
        frames: Any = self._frames  # type: ignore[attr-defined]  # which the stubs do not have
        first, *others = frames
        duration = max(10 * round(100 / self.fps), SHORTEST)
        first.save(self.outfile, save_all=True, append_images=others, duration=duration, loop=0, comment=MARK.encode())
