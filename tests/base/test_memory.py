"""A run that cannot fit in memory is refused before it begins."""

import pytest

import odesim
from odesim.base import device as memory
from odesim.base.errors import ParamError


@pytest.mark.parametrize(
    ("meminfo", "limit", "free"),
    [
        ("MemTotal: 9 kB\nMemAvailable:    1000 kB\n", "max\n", 1_024_000),
        ("MemAvailable: 1000 kB\n", "500000\n", 500_000),
        ("MemAvailable: 1000 kB\n", None, 1_024_000),
        ("", "700\n", 700),
    ],
)
def test_free_bytes(meminfo, limit, free, tmp_path, monkeypatch):
    """The lesser of what the machine has available and what the container may take."""
    monkeypatch.setattr(memory, "STATUS", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "LIMIT", tmp_path / "limit")
    (tmp_path / "meminfo").write_text(meminfo)
    if limit is not None:
        (tmp_path / "limit").write_text(limit)
    assert memory.free_bytes() == free


@pytest.mark.parametrize(("rows", "fits"), [(10_000, True), (124_000_000, True), (126_000_000, False)])
def test_room(rows, fits, monkeypatch):
    """Rows of ten float64 and their time take 88 bytes each: with 11 GB free there is room for 125 million."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 11_000_000_000)
    if fits:
        memory.check_saves_fit(rows, 10, 8)
    else:
        with pytest.raises(ParamError, match=r"126000000 saved times of 10 numbers would take 11\.1 GB, more than the 11 GB that are free"):
            memory.check_saves_fit(rows, 10, 8)


@pytest.mark.parametrize(("count", "fits"), [(10**9, True), (2 * 10**9, False), (10**30, False)])
def test_parts(count, fits, monkeypatch):
    """Parts of count and 2 * 10^8 numbers of 8 bytes: with 11 GB free there is room for the first; the sentence names the largest."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 11_000_000_000)
    parts = {"the samples": 2 * 10**8, "the table": count}
    if fits:
        memory.check_fits("a training", parts, 8)
    else:
        with pytest.raises(ParamError, match=r"a training would take .* GB, most of it for the table, more than the 11 GB that are free"):
            memory.check_fits("a training", parts, 8)


def test_sensitivities_that_do_not_fit_are_refused(monkeypatch):
    """n = 3000 weights by as many targets: 9e6 derivatives, 16 vectors of which take 1.15 GB; nothing is compiled."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000_000_000)
    monkeypatch.setattr("odesim.run.problem.parts_of", lambda *_: pytest.fail("compiled"))
    sentence = (
        "^joma.nonlinear: integrating the sensitivities to mu would take 1.15 GB, most of it for dv_dmu, more than the 1 GB that are free$"
    )
    with pytest.raises(ParamError, match=sentence):
        odesim.integrate("joma.nonlinear", sizes={"M": 3000}, sensitivities="mu")


def test_points_that_do_not_fit_are_refused(monkeypatch):
    """2e9 points of 8 bytes, three times while they are made, are 48 GB; not one is made."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 11_000_000_000)
    monkeypatch.setattr("odesim.ensembles.design.np.linspace", lambda *_: pytest.fail("made"))
    with pytest.raises(ParamError, match=r"^--grid mu: linspace with 2000000000 points would take 48 GB, .* more than the 11 GB"):
        odesim.ensemble("joma.nonlinear", grid={"mu": "linspace(0,1,2000000000)"})
