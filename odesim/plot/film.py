"""Films of arrays along a run, chosen by name: each saved time a frame, on one scale; mp4 by ffmpeg, gif by pillow."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, StoreError, counted, no_such, value_text
from odesim.plot.choice import TIME, Choice
from odesim.plot.ensemble import chosen_axes, chosen_names, title_of
from odesim.plot.ensemble_panels import lost_note, member_floor
from odesim.plot.files import MOVING, check_picture, write_atomically
from odesim.plot.frames import Film, MemberFilm, has_unit_rows, make_frames
from odesim.plot.members import MEMBER, as_members, as_solution, components, member_values, varied_numbers
from odesim.plot.panels import spread_indices
from odesim.plot.strips import on_circle
from odesim.plot.style import literal, project_style

if TYPE_CHECKING:
    import xarray

DPI = 200  # 630 dots across
MARK = "odesim"  # in the file's comment: such a file may be replaced
MOST = 60  # frames a second
SHORTEST = 20  # ms of a frame of a gif, whose times are whole hundredths of a second: browsers show a shorter one for 100 ms
FRAMES = 200  # largest number of saved times that are drawn, spread evenly
NUMBERS = 50_000_000  # largest number of values of members, 400 MB
ATTENTION = ("c", "attention", "Z")  # what is animated if nothing is named


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
    """Draws an array of a run along its time as a film.

    A vector is drawn as bars or, above 100 components, as a line; a matrix as an image; unit vectors of 2 or 3 components, a matrix of
    them, and angles that a view shows as points, on a circle or sphere; a component of an ensemble as a curve over the number that
    varies, as a map over two, else as a histogram. Saved times beyond 200 are thinned evenly. The file is complete or absent.

    Parameters
    ----------
    run : Solution, Trajectory, xarray.Dataset, str or Path
        A run, an ensemble, or the folder of a stored one; of several seeds the mean.
    path : str or Path
        The file: .gif, or .mp4, which needs ffmpeg.
    var : str
        The array; default attention, or the first one.
    choice : Choice
        In the place of var, with the component, the axes and the scales of an ensemble.
    fps : int
        Frames a second, of a gif at most 50.
    overwrite : bool
        Replace a file that odesim has not made; an animation of odesim is replaced in any case.
    progress : callable
        Called with the numbers of frames done, and of all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    StoreError
        Where the file cannot be written.
    ParamError
        For a choice that the run does not have.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, save=3)
    >>> odesim.plot.animate(run, "run.gif", var="v").name
    'run.gif'
    """
    if isinstance(fps, bool) or not isinstance(fps, int) or not 1 <= fps <= MOST:
        raise ParamError(f"fps must be a whole number from 1 to {MOST}, not {fps!r}")
    target = check_animation(path, overwrite=overwrite)
    film = film_of_run(run, choice or Choice((var,) if var else ()))
    with project_style():
        figure, show = make_frames(film)
        count, hold = len(film.t), fps // 2  # the end is held for half a second

        def write(temporary: Path) -> None:
            gif = target.suffix.lower() == ".gif"
            writer: AbstractMovieWriter = MarkedPillowWriter(fps=fps) if gif else FFMpegWriter(fps=fps, metadata={"comment": MARK})
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
    if isinstance(run, str | PathLike):
        from odesim.store.read import load_run, open_run, read_solution
        from odesim.store.schema import run_kind

        stored = run_kind(Path(run))
        run = (open_run if stored == "ensemble" else load_run if stored == "training" else read_solution)(Path(run))
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


class MarkedPillowWriter(PillowWriter):
    """matplotlib's writer of gifs, with a comment in the file."""

    def finish(self) -> None:
        """Writes the file."""
        frames: Any = self._frames  # type: ignore[attr-defined]  # which the stubs do not have
        first, *others = frames
        duration = max(10 * round(100 / self.fps), SHORTEST)
        first.save(self.outfile, save_all=True, append_images=others, duration=duration, loop=0, comment=MARK.encode())


def without_single_axes(values: Array, dims: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """(values (T, *shape), dims) without the axes of one place; a vector stays one, and a single point on a circle or sphere."""
    if values.ndim < 3 or (values.ndim == 3 and has_unit_rows(values)):
        return values, dims
    axes = [k for k, n in enumerate(values.shape[1:]) if n > 1] or [0]
    return values.reshape(len(values), *(values.shape[1 + k] for k in axes)), tuple(dims[k] for k in axes)


def film_of(run: Any, name: str = "") -> Film:
    """The Film of an array of a run: a Solution, a Trajectory, or its Dataset, of several seeds their mean.

    name: of the array; default one that the model shows as points, else attention, else the first.
    Raises ParamError, in a sentence, where there is no such array, or nothing to animate.
    """
    if hasattr(run, "y") and not hasattr(run, "data_vars"):  # a Dataset has its variables as attributes
        title, t, unit, labels = str(run.model), run.t, str(run.attrs.get("time_unit") or ""), {}
        every = {key: (values, run.dims.get(key, ())) for key, values in {**on_host(run.y), **run.observables}.items()}
        points = [key for key, view in run.attrs.get("views", {}).items() if view == "Points" and key in every]
        angles = [key for key in points if np.ndim(every[key][0]) == 2]
        every |= {key: (on_circle(every[key][0]), (*every[key][1], "")) for key in angles}
    else:
        labels, points = run.attrs.get("labels", {}), list[str]()
        run = run if hasattr(run, "data_vars") else run.to_xarray()
        timed = {str(key): v.transpose("seed", TIME, ...) for key, v in run.data_vars.items() if TIME in v.dims}
        every = {key: (v.values.mean(axis=0), v.dims[2:]) for key, v in timed.items()}
        seeds, t, unit = run["seed"].values, run[TIME].values, "iterations"
        which = f"mean of {counted(len(seeds), 'seed')}" if len(seeds) > 1 else f"seed {seeds[0]}"
        title = f"{run.attrs['task']} ({run.attrs['model']}), {which}"
    arrays, dims = {}, {}
    for key, (values, names) in every.items():
        axes = tuple(map(str, names)) if len(names) == np.ndim(values) - 1 else ("index",) * (np.ndim(values) - 1)
        arrays[key], dims[key] = without_single_axes(np.asarray(values, float), axes)
    possible = [key for key, values in arrays.items() if values.ndim in (2, 3)]
    if name and name not in arrays:
        raise ParamError(no_such("array", name, possible, title))
    if not possible:
        raise ParamError(f"{title} has no array with times to animate: what it records are numbers, or kept at the end only")
    if name and name not in possible:
        what = "is a number at each time" if arrays[name].ndim == 1 else f"has {counted(arrays[name].ndim - 1, 'axis', 'axes')}"
        raise ParamError(f"{name} {what}; vectors and matrices can be animated: {', '.join(possible)}")
    name = name or next((key for key in (*points, *ATTENTION) if key in possible), possible[0])
    if len(t) < 2:
        raise ParamError(f"{title} has {len(t)} saved time; an animation needs two or more: --save N stores them")
    frames = spread_indices(len(t), FRAMES)
    return Film(name, literal(title), np.asarray(t)[frames], arrays[name][frames], dims[name], unit, labels)


def film_of_members(run: "xarray.Dataset", choice: Choice) -> MemberFilm:
    """The film of an ensemble Dataset. choice: quantity, component, the numbers along the axes, scales.

    Raises ParamError for what the run does not have, and where there is one time; StoreError if no member is done, or none has a value.
    """
    choice.check()
    if choice.at is not None or choice.x == TIME:
        raise ParamError("a film shows all saved times: leave out at, and x = 'time'")
    name = chosen_names(run, choice)[0]
    count = run.sizes[TIME]
    if count < 2:
        raise ParamError(f"{run.attrs['model']} has {counted(count, 'saved time')}; an animation needs two or more: --save N stores them")
    over = tuple(chosen_axes(run, choice))
    if len(over) < 2:
        choice.refuse_colors()
    rows = spread_indices(count, int(min(FRAMES, max(NUMBERS // run.sizes[MEMBER], 2))))
    drawn = components(run, name, choice, 1)
    values = member_values(run, drawn, rows)[:, :, 0].T
    if not np.isfinite(values).any():
        raise StoreError(f"no member has a value of {name}: there is nothing to draw")
    numbers = varied_numbers(run)
    alone = numbers is not None and len(numbers) == len(over)
    lost = lost_note(run, ~np.isfinite(values[-1]))
    floor = member_floor(run, drawn)
    unit = str(run.attrs.get("time_unit", ""))
    return MemberFilm(title_of(run), run[TIME].values[rows], unit, values, drawn, over, choice, alone, lost, floor, run)
