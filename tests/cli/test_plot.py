"""`odesim plot` with choices, and `odesim ensemble --plot` without a run."""

import shlex
import tempfile

import pytest

from odesim import open_run

GRID = (
    "joma.nonlinear --grid 'mu=linspace(0.5,2.5,4)' --grid 'v=logspace(-3,-1,3)' --size M=2 --observe gap --save 3 --method tsit5 --quiet"
)
WRONG = {
    "name": ("--var w", "no stored state or observable 'w' in joma.nonlinear; choose from gap, v"),
    "axis": ("--x mo", "no varied number (x) 'mo' in joma.nonlinear; choose from mu, time, v_start"),
    "index": ("--var v --index 2", "index 2 is outside v, whose shape is (2): choose 0 to 1"),
    "no index": ("--index 1,x", "--index takes whole numbers from 0, as in 3 or 1,0, not '1,x'"),
    "time": ("--at 9", "at = 9 is outside the saved times, which go from 0 to 5"),
    "scale": ("--log w", "log takes letters of x, y and c"),
    "no colours": ("--x mu --log c", "log c: this picture has no colours"),
}


@pytest.fixture
def run(odesim):
    """A grid of two numbers, stored as run.zarr."""
    assert odesim("ensemble", *shlex.split(GRID), "--out", "run.zarr").exit_code == 0


def test_choices_are_taken_or_refused(odesim, folder, run):
    """What fits is drawn; what does not is one sentence with the choices and exit code 2, and nothing is written."""
    for words, sentence in WRONG.values():
        done = odesim("plot", "run.zarr", *words.split())
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1) and sentence in done.stderr, done.stderr
    assert not list(folder.glob("*.png"))
    assert odesim("plot", "run.zarr", *shlex.split("--var gap --x v --y mu --at 2.5 --log x")).exit_code == 0
    assert (folder / "run.png").exists()


def test_an_integration_takes_names_components_and_scales(odesim, folder):
    """--var, --index and --log change the picture; --x, --y and --at are for ensembles."""
    odesim("integrate", *shlex.split("joma.nonlinear --size M=3 --save 20 --out one.zarr --quiet"))
    pictures = []
    for k, words in enumerate(("", "--var v", "--var v --index 2", "--var v --log y")):
        assert odesim("plot", "one.zarr", "--out", f"{k}.svg", *words.split()).exit_code == 0
        pictures.append((folder / f"{k}.svg").read_bytes())
    assert len(set(pictures)) == 4
    for words in ("--x mu", "--at 1", "--var w", "--index 7"):
        assert odesim("plot", "one.zarr", *words.split()).exit_code == 2
    assert not (folder / "one.png").exists()


def test_a_picture_needs_no_run(odesim, folder, tmp_path_factory, monkeypatch):
    """--plot without --out draws the same picture and leaves nothing else, here and where temporary files are."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    assert odesim("ensemble", *shlex.split(GRID), "--plot", "a.png").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["a.png"] and not list(place.iterdir())
    assert odesim("ensemble", *shlex.split(GRID), "--plot", "b.png", "--out", "run.zarr").exit_code == 0
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()
    for words in ("", "--plot c.png --shard 1/2"):
        done = odesim("ensemble", *shlex.split(GRID), *words.split())
        assert done.exit_code == 2 and "--out RUN.zarr" in done.stderr
    assert not (folder / "c.png").exists()


PLOT = "--plot a.png"


@pytest.mark.parametrize(
    ("words", "stored"), [(PLOT, ["entropy"]), (f"{PLOT} --var gap,v", ["gap"]), ("", []), (f"{PLOT} --observe gap", ["gap"])]
)
def test_a_picture_has_observables_of_its_own(odesim, folder, words, stored):
    """Those that it names, else those that are one number, as on the page of a single run; without a picture, or by --observe, as asked."""
    ensemble = "joma.nonlinear --vary 'mu=uniform(1,2)' --members 2 --size M=2 --method tsit5 --out a.zarr --quiet"
    assert odesim("ensemble", *shlex.split(f"{ensemble} {words}")).exit_code == 0
    assert open_run(folder / "a.zarr").attrs["observables"] == stored


WORDS = {
    "name": ("--var w", "no state or observable 'w' in what this run stores of joma.nonlinear; choose from gap, v"),
    "not observed": ("--var entropy", "no state or observable 'entropy' in what this run stores"),
    "axis": ("--x mo", "no varied number (--x) 'mo' in joma.nonlinear; choose from mu, time, v; did you mean 'mu'?"),
    "y alone": ("--y mu", "y = 'mu' needs x too"),
}


@pytest.mark.slow
def test_an_ensemble_draws_what_it_is_asked_for(odesim, folder, run):
    """--var, --x and --y of --plot are those of `odesim plot`; what the run will not have is refused before it is computed."""
    for words in ("--var gap --x mu", "--var v --x v --y mu", "--x time"):
        assert odesim("ensemble", *shlex.split(GRID), "--plot", "a.png", *words.split()).exit_code == 0
        assert odesim("plot", "run.zarr", "--out", "b.png", *words.split()).exit_code == 0
        assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()
    for words, sentence in WORDS.values():
        done = odesim("ensemble", *shlex.split(GRID), "--plot", "c.png", "--out", "c.zarr", *words.split())
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1) and sentence in done.stderr, done.stderr
    done = odesim("ensemble", *shlex.split(GRID), "--out", "c.zarr", "--x", "mu")
    assert done.exit_code == 2 and "--x is an option of the picture: give --plot FILE.png too" in done.stderr
    assert not [*folder.glob("c.*")]
    done = odesim("ensemble", *shlex.split(GRID), "--out", "c.zarr", "--plot", "c.png", "--x", "mu[3]")  # known when it is drawn
    assert done.exit_code == 3 and "x = 'mu[3]' is not one number of mu" in done.stderr and [*folder.glob("c.*")] == [folder / "c.zarr"]


def test_all_panels(odesim, folder):
    """A run has more quantities than six panels hold: --all draws as much at once as `odesim plot --all` later, to the bit.

    As long as saved times are close enough for curves without corners, between which a stored run computes nothing.
    """
    odesim("integrate", *shlex.split("scan_snap.reduced_symmetric --save 401 --out one.zarr --plot six.png --quiet"))
    odesim("integrate", *shlex.split("scan_snap.reduced_symmetric --save 401 --plot all.png --all --quiet"))
    assert odesim("plot", "one.zarr", "--all", "--out", "later.png").exit_code == 0
    six, every, later = ((folder / f"{name}.png").read_bytes() for name in ("six", "all", "later"))
    assert every == later != six
