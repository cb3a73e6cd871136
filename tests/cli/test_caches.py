"""The cache of kernels: which folder is used and why, what it holds, and that a run needs none."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odesim.base.errors import CacheWarning


def test_cache_is_shown_and_cleared(odesim, folder, monkeypatch):
    """An empty cache has size 0; clear removes what is ours and leaves other files."""
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(folder))  # what another run left in the machine's own is listed too
    assert odesim("cache").stdout == f"{folder / 'cache'}: 0 modules, 0 B\n"
    (folder / "cache").mkdir()
    (folder / "cache" / "x_0123456789abcdef.py").write_text("x = 1\n")
    (folder / "cache" / "mine.txt").write_text("mine")
    assert "1 module, 6 B" in odesim("cache").stdout
    assert odesim("cache", "clear").stdout.startswith("6 B freed")
    assert [p.name for p in (folder / "cache").iterdir()] == ["mine.txt"]


def linked(cache: Path) -> None:
    real = cache.with_name("real")
    real.mkdir(mode=0o700)
    cache.symlink_to(real)


def open_to(mode: int) -> Callable[[Path], None]:
    def make(cache: Path) -> None:
        cache.mkdir()
        cache.chmod(mode)

    return make


def private(cache: Path) -> None:
    cache.mkdir(mode=0o700)


def file(cache: Path) -> None:
    cache.write_text("")


def in_a_file(cache: Path) -> None:
    cache.parent.write_text("")


# how the folder is made -> why it is not used
CACHES: dict[str, tuple[Callable[[Path], None], str]] = {
    "absent": (lambda cache: None, ""),
    "private": (private, ""),
    "a link": (linked, ""),
    "of a group": (open_to(0o770), "can be written by other users"),
    "of all": (open_to(0o777), "can be written by other users"),
    "a file": (file, "is not a folder"),
    "in a file": (in_a_file, "Not a directory"),
    "a long name": (lambda cache: None, "File name too long"),
}


@pytest.mark.parametrize("case", CACHES)
def test_which_cache_is_used_and_why(case, odesim, folder, monkeypatch):
    """What is written is read again from the same folder; where it is not the one asked for, cache and doctor say which, and why."""
    from odesim.targets import cache

    make, why = CACHES[case]
    asked = folder / "inner" / ("c" * 300 if case == "a long name" else "cache")
    if case != "in a file":
        asked.parent.mkdir()
    make(asked)
    (folder / "tmp").mkdir()
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(asked))
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    used, said = cache.used_folder()
    written = cache.write_file("x_0123456789abcdef.py", b"x = 1")
    assert written is not None and written.parent == used and cache.read_file(written.name) == b"x = 1"
    assert (used == asked) == (not why) and why in said
    shown = " ".join(odesim("cache").stdout.split())
    assert "1 module, 5 B" in shown and (f"{used} is used in its place" in shown and why in shown if why else "in its place" not in shown)
    doctor = " ".join(odesim("doctor").stdout.split())
    assert ("used yes" in doctor) == (not why) and (not why or f"; {used}".replace(" ", "") in doctor.replace(" ", ""))
    assert odesim("cache", "clear").stdout.startswith("5 B freed") and not written.exists()


@pytest.mark.parametrize("first", ["a file", "of all", "in a file", "a long name"])
@pytest.mark.parametrize("second", ["a file", "of a group", "of another"])
def test_no_folder_can_be_used(first, second, odesim, folder, monkeypatch):
    """Neither folder of compiled code can be used: cache, doctor and what compiles say so in one sentence, with a remedy."""
    from odesim.targets import cache, native

    note = bad_caches(first, second, folder, monkeypatch)
    assert note in " ".join(odesim("cache").stdout.split())
    assert note.replace(" ", "") in "".join(odesim("doctor").stdout.split())
    text = f"from odesim.runtime.functions import njit\n\n\n@njit('int64(int64)')\ndef twice(n):\n    return 2 * n  # {first}, {second}\n"
    with pytest.warns(CacheWarning) as said:
        address = native.load_native(text, "twice", ["twice"])["twice"]
    assert {str(warning.message) for warning in said} == {cache.cache_note()}
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(21) == 42


@pytest.mark.slow
def test_a_run_needs_no_cache(folder, monkeypatch):
    """A new process without any cache: the numbers of a run, exit code 0, and one warning."""
    command = [sys.executable, "-m", "odesim", "integrate", "joma.linear_softmax", "--size", "M=3", "--save", "3", "--json"]
    wanted = subprocess.run(command, capture_output=True, text=True, check=True)
    note = bad_caches("of all", "a file", folder, monkeypatch)
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1) and done.stderr.startswith("odesim: warning: ")
    assert " ".join(done.stderr.split()) == f"odesim: warning: {note}"
    assert json.loads(done.stdout)["final"] == json.loads(wanted.stdout)["final"]


def bad_caches(first: str, second: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes both folders of compiled code unusable, as CACHES says, and returns the sentence on it."""
    from odesim.targets import cache

    asked, temporary = folder / "inner" / ("c" * 300 if first == "a long name" else "cache"), folder / "tmp"
    if first != "in a file":
        asked.parent.mkdir()
    CACHES[first][0](asked)
    temporary.mkdir()
    other = temporary / f"odesim-{os.getuid()}"
    if second != "of another":
        CACHES[second][0](other)
    elif os.getuid() == 0:
        other.mkdir(mode=0o700)
        os.chown(other, 12345, 12345)
    else:
        pytest.skip("only root can give a folder away")
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(asked))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    note = " ".join(cache.cache_note().split())
    assert cache.used_folder()[0] is None and str(asked) in note and str(other) in note
    assert note.endswith("ODESIM_CACHE_DIR names another folder")
    return note


def test_cache_of_nobody(odesim, monkeypatch):
    """ODESIM_CACHE_DIR in the folder of a user who is not there: exit code 2 and one sentence."""
    monkeypatch.setenv("ODESIM_CACHE_DIR", "~no-such-user/cache")
    for command in ("cache", "doctor"):
        done = odesim(command)
        assert (done.exit_code, done.stdout) == (2, "") and "ODESIM_CACHE_DIR is '~no-such-user/cache'" in done.stderr


NAME = "x_0123456789abcdef.o"


def with_a_link(cache: Path) -> None:
    private(cache)
    (cache / NAME).symlink_to("/etc/passwd")


# what is at a place of the cache before a stranger puts a folder there
BEFORE: dict[str, Callable[[Path], None]] = {
    "absent": lambda cache: None,
    "private": private,
    "a link": linked,
    "with a link": with_a_link,
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("theirs", ["a folder", "a link"])
def test_a_stranger_is_never_faster(before, theirs, tmp_path, monkeypatch):
    """Whenever a stranger puts a folder in the place of the cache, before each call that is made for a file, his file is not read.

    A folder of his is one that others can write, or a link to one; whoever is not root cannot give one away.
    """
    from odesim.targets import cache

    def attacked(moment: int, call: Callable[[], object]) -> bool:
        """Whether a stranger who waits for this many calls into C has his folder there before call() ends."""
        home = tmp_path / f"{before} {theirs} {moment} {call.__name__}"
        (home / "tmp").mkdir(parents=True)
        place = home / "tmp" / f"odesim-{os.getuid()}"
        monkeypatch.setenv("ODESIM_CACHE_DIR", str(home / "absent"))
        monkeypatch.setattr("tempfile.tempdir", str(home / "tmp"))
        BEFORE[before](place)
        stranger = home / "stranger"
        stranger.mkdir()
        (stranger / NAME).write_bytes(b"evil")
        stranger.chmod(0o777)
        count = -1

        def strike(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event == "c_call"
            if count == moment:
                count += 1
                sys.setprofile(None)
                if os.path.lexists(place):
                    place.rename(home / "moved")
                stranger.rename(place) if theirs == "a folder" else place.symlink_to(stranger)
                sys.setprofile(strike)

        sys.setprofile(strike)
        try:
            call()
        finally:
            sys.setprofile(None)
        return count > moment

    def read() -> None:
        assert cache.read_file(NAME) is None

    moment = 0
    while attacked(moment, read):
        moment += 1
    assert moment > 10


def test_only_own_files_are_read(tmp_path, monkeypatch):
    """A file that others can write, or one of another user, is made anew, in a folder that is in order too."""
    from odesim.targets import cache

    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path / "cache"))
    path = cache.write_file(NAME, b"good")
    assert path and cache.read_file(NAME) == b"good"
    path.chmod(0o666)
    assert cache.read_file(NAME) is None
    assert cache.write_file(NAME, b"good") and cache.read_file(NAME) == b"good" and path.stat().st_mode & 0o777 == 0o600
    if os.getuid() == 0:
        os.chown(path, 12345, 12345)
        assert cache.read_file(NAME) is None
