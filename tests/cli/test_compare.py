"""`odesim compare` as people and programs meet it."""

import json
from dataclasses import replace

import pytest

from odesim.lab.compare.recipes import RECIPES, Reading

SMALL = ("--task", "scan_snap", "--steps", "6")
JOMA = (
    "joma.linear --task joma_gaussian --set attention=exp --set signal=fixed --set temperature=1 --set num_classes=1 --set num_distinct=4"
)

MORE = ("--set", "num_common=2", "--set", "init_scale=0.3")


@pytest.fixture
def runs(odesim):
    """A training and an integration, stored."""
    rates = ("--set", "eta_Y=0.3", "--set", "eta_Z=0.3")
    assert (
        odesim("train", "scan_snap", *rates, "--set", "momentum=0", "--seeds", "0:2", "--steps", 6, "--out", "t.zarr", "--quiet").exit_code
        == 0
    )
    options = ("--span", "0:9", "--save", 10, "--backend", "numpy", "--out", "i.zarr", "--quiet")
    assert odesim("integrate", "scan_snap.full", *rates, *options).exit_code == 0


def test_table(odesim, folder):
    """One table on stdout, nothing on stderr, in 80 columns; it says which map and clock, and the picture is there."""
    done = odesim("compare", "scan_snap.full", *SMALL, "--seeds", "3:6", "--plot", "c.png")
    assert (done.exit_code, done.stderr) == (0, "") and max(map(len, done.stdout.splitlines())) < 80
    for word in (
        "scan_snap.full, the flow",
        "3 seeds",
        "momentum 0.9",
        "t = [i - 0.9 (1 - 0.9^i)",
        "rel L2",
        "c (2, 30)",
        "drawn in c.png",
    ):
        assert word in done.stdout
    assert (folder / "c.png").read_bytes()[:4] == b"\x89PNG"
    words = f"joma.joint_exp:RELU --task joma_gaussian {' '.join(MORE)} --steps 3 --map discrete"
    settings = {"attention": "exp", "num_classes": 3, "num_distinct": 4, "phi": "relu", "momentum": 0.5}
    done = odesim("compare", *words.split(), *(f"--set={name}={value}" for name, value in settings.items()))
    assert "discrete map with momentum" in done.stdout, done.stderr


def test_json(odesim):
    """One object that any JSON reader takes: what is no number is null, lists go over the seeds."""
    done = odesim("compare", "scan_snap.full", *SMALL, "--seeds", "0:2", "--json", "--observable", "loss", "--observable", "Y")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["observable"] for row in found["observables"]] == ["loss", "Y"] and found["seeds"] == [0, 1]
    assert found["observables"][1]["shape"] == [30, 3] and len(found["observables"][0]["each"]["scale"]) == 2
    assert found["time"]["count"] == 7 and found["worst"] in ("loss", "Y") and found["unit"] == "SGD steps"
    one = json.loads(odesim("compare", "scan_snap.full", *SMALL, "--json").stdout)
    assert one["observables"][0]["spread"] is None and one["observables"][0]["each"] == {}


@pytest.mark.slow
def test_stored_runs(odesim, runs, folder):
    """Two folders in either order are one comparison; a run beside itself has no errors; --quiet is quiet."""
    first, second = (json.loads(odesim("compare", *pair, "--json").stdout) for pair in (("t.zarr", "i.zarr"), ("i.zarr", "t.zarr")))
    assert first == second and first["time"]["last"] == 6 and "i.zarr" in first["theory"]
    for run in ("t.zarr", "i.zarr"):
        rows = json.loads(odesim("compare", run, run, "--json").stdout)["observables"]
        assert rows and all((row["relative_l2"], row["sup"], row["shift"]) == (0, 0, 0) for row in rows)
    same, mixed = odesim("compare", "t.zarr", "t.zarr").stdout, odesim("compare", "t.zarr", "i.zarr").stdout
    assert [line.split()[0] for line in same.splitlines()[:2]] == ["first", "second"]
    assert [line.split()[0] for line in mixed.splitlines()[:2]] == ["theory", "training"]
    done = odesim("compare", "t.zarr", "i.zarr", "--quiet", "--plot", "c.pdf")
    assert (done.exit_code, done.output) == (0, "") and (folder / "c.pdf").stat().st_size > 1000


def test_theory_of_another_training_is_said(odesim, runs):
    """Stored runs that do not belong together are compared, and a sentence on stderr says why they do not, with --quiet too."""
    assert odesim("train", "scan_snap", "--set", "decoder=decorrelated", "--steps", 6, "--out", "d.zarr", "--quiet").exit_code == 0
    done = odesim("compare", "d.zarr", "i.zarr", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "") and "decoder is decorrelated, not vanilla" in done.stderr
    assert "decoder is decorrelated, not vanilla" in json.loads(odesim("compare", "d.zarr", "i.zarr", "--json").stdout)["notes"][0]
    assert odesim("compare", "t.zarr", "i.zarr", "--quiet").stderr == ""


def test_an_early_end_is_3(odesim):
    """Theory that blows up: what was before is compared, the reason is on stderr, the exit code says so."""
    done = odesim("compare", *JOMA.split(), *MORE, "--steps", 60)
    assert done.exit_code == 3 and "runs to infinity" in done.stderr and "v (6)" in done.stdout


@pytest.mark.first(7)
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "compare needs a MODEL and its --task or --data, two RUNs, or a --recipe"),
        ("scan_snap.full", "a comparison needs a model and a task (--task) or data (--data), or two stored runs"),
        ("scan_snap.ful --task scan_snap", "did you mean 'scan_snap.full'?"),
        ("scan_snap.full --task scan_snip", "did you mean 'scan_snap'?"),
        ("scan_snap.full --task scan_snap --set eta_W=1", "no setting 'eta_W'"),
        ("scan_snap.full --task scan_snap --seeds 3", "--seeds takes A:B"),
        ("scan_snap.full --task scan_snap --steps -1", "must be at least 0"),
        ("scan_snap.full --task scan_snap --map discreet", "did you mean 'discrete'?"),
        ("scan_snap.full --task scan_snap --clock limits", "did you mean 'limit'?"),
        ("scan_snap.full --task scan_snap --observable entrpy", "did you mean 'entropy'?"),
        ("scan_snap.full --task scan_snap --plot c.bmp", "no picture format 'bmp'"),
        (
            "joma.linear --task joma_gaussian",
            "attention is softmax, not exp; signal is ce, not fixed; num_classes is 20, not 1; eta_z / eta_w is 1, not temperature^2",
        ),
        (f"{JOMA} --set momentum=0.5", "of joma_gaussian: momentum is 0.5, not 0"),
        (f"{JOMA} --set phi=relu --set eta_z=.5", "of joma_gaussian: phi is relu, not identity; eta_z / eta_w is 5, not temperature^2 = 1"),
        ("scan_snap.full --task scan_snap --set decoder=decorrelated", "decoder is decorrelated, not vanilla"),
        ("scan_snap.symmetric --task scan_snap --set num_unique_per_next=0", "num_unique_per_next is 0, not more"),
        ("joma.nonlinear --task joma_gaussian", "in the theory of joma_gaussian; choose from joma.joint_exp, joma.joint_linear, "),
        ("t.zarr", "a comparison needs a model and a task (--task) or data (--data), or two stored runs"),
        ("t.zarr x.zarr", "no run 'x.zarr'"),
        ("scan_snap.full scan_snap", "scan_snap.full is a model: compare it with a task (--task scan_snap)"),
        ("scan_snap.full t.zarr", "compare it with a task (--task NAME); two stored runs"),
        ("t.zarr i.zarr --set eta_Y=1", "settings belongs to a training"),
        ("t.zarr i.zarr --map flow", "map belongs to a training"),
        ("t.zarr i.zarr --observable looss", "did you mean 'loss'?"),
        ("t.zarr i.zarr --align q", "no axis 'q' in what is compared"),
        ("t.zarr i.zarr --task scan_snap", "one model, or two runs without a task"),
    ],
)
def test_wrong(command, said, odesim, request):
    """Exit code 2, one sentence, nothing on stdout."""
    if "t.zarr" in command:
        request.getfixturevalue("runs")
    done = odesim("compare", *command.split())
    assert (done.exit_code, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1


def test_recipe(odesim, monkeypatch: pytest.MonkeyPatch):
    """The table ends with the numbers; one that is off is named and marked, with exit code 3; --json has them all."""
    done = odesim("compare", "--recipe", "reversal_shuffled", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    recipe = RECIPES["reversal_shuffled"]
    wrong = Reading("wrong on purpose", recipe.readings[0].of, 6.0, 0.1, "none")
    monkeypatch.setitem(RECIPES, "reversal_shuffled", replace(recipe, readings=(*recipe.readings[:2], wrong)))
    done = odesim("compare", "--recipe", "reversal_shuffled")
    assert done.exit_code == 3 and "reversal_shuffled: other than recorded: wrong on purpose" in done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "OFF "))]
    assert [line.split()[0] for line in lines] == ["ok", "ok", "OFF"] and max(map(len, done.stdout.splitlines())) < 80
    rows = json.loads(odesim("compare", "--recipe", "reversal_shuffled", "--json").stdout)["numbers"]
    assert [row["agrees"] for row in rows] == [True, True, False] and rows[2]["recorded"] == 6.0


def test_recipe_refused(odesim):
    """A wrong name lists the choices; what the recipe has is not given again."""
    for given, words in (
        (("--recipe", "reversal"), "reversal_chains, reversal_replacement, reversal_shuffled"),
        (("--recipe", "reversal_shuffled", "--steps", "4"), "steps: the recipe 'reversal_shuffled' fixes it already"),
        (("reversal.row", "--recipe", "reversal_shuffled"), "model: the recipe"),
    ):
        done = odesim("compare", *given)
        assert done.exit_code == 2 and done.stdout == "" and words in done.stderr + str(done.exception)
