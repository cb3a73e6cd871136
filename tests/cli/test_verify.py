"""`odesim verify`: its text, JSON and page, and exit codes."""

import json
import random
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import odesim as library
from odesim.lab.claims import Claim, Measurement, Verdict, all_claims
from odesim.lab.claims_json import SCHEMA
from odesim.lab.output import claims_page
from odesim.symbolic import Source

ROOT = Path(__file__).parents[2]


def claim_of(verdict: Verdict, check=lambda: [Measurement("a", 1.0, 1.0, 0.1)]) -> Claim:
    given: dict[str, Any] = {"when": "the moon is full" * (verdict == Verdict.HOLDS_WHEN), "fails": verdict == Verdict.FAILS}
    return Claim("joma.made", Source("tian2023joma", "Theorem 0"), "joma.linear, but not run", "x", check, "none", **given)


def broken():
    raise ValueError("two\nlines")


@pytest.mark.parametrize(
    ("claim", "code", "pieces"),
    [
        (claim_of(Verdict.HOLDS), 0, ("1 claim: 1 hold as printed; all verdicts are as recorded",)),
        (claim_of(Verdict.FAILS), 3, ("HOLDS (RECORDED: FAILS)", "not as recorded: joma.made")),
        (claim_of(Verdict.HOLDS, broken), 3, ("ERROR (RECORDED: HOLDS)", "ValueError: two lines", "1 with an error")),
    ],
    ids=["as recorded", "another verdict", "an exception"],
)
def test_exit_codes(claim, code, pieces, odesim, monkeypatch):
    """0 where all verdicts are as recorded, else 3; an exception in a check is said, and is not the end."""
    monkeypatch.setattr("odesim.lab.claims.all_claims", lambda: [claim])
    done = odesim("verify")
    assert done.exit_code == code and not done.stderr
    assert all(piece in done.stdout for piece in pieces), done.stdout
    assert odesim("verify", "--json").exit_code == code


def test_text_and_json_agree(odesim):
    """80 columns; every measurement is in both."""
    text, data = odesim("verify", "joma.conserved_ratio").stdout, json.loads(odesim("verify", "joma.conserved_ratio", "--json").stdout)
    assert max(map(len, text.splitlines())) < 80
    (claim,) = data["claims"]
    assert data["as_recorded"] is True and claim["place"] == "Theorem 2"
    for statement in claim["statements"].values():
        assert statement["text"] in text
        assert all(f"{row['measured']:.6g}" in text for row in statement["measurements"])


@pytest.mark.parametrize("name", ["joma.conserved_ratio", "joma.blow_up_time", "galore.memory"])
def test_json_follows_its_schema(name, odesim):
    """A claim that holds, a corrected one, one of numbers alone: valid, every key described; without a key, or of another version, not."""
    schema, data = json.loads(odesim("verify", "--schema").stdout), json.loads(odesim("verify", name, "--json").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    claim = data["claims"][0]
    described = schema["properties"]["claims"]["items"]["properties"]
    assert set(claim) == set(described)
    for statement in claim["statements"].values():
        assert set(statement) == set(described["statements"]["properties"]["printed"]["properties"])
    for broken in ({**data, "version": 2}, {**data, "claims": [{key: claim[key] for key in claim if key != "depends"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_a_json_of_errors_and_infinities_follows_it(odesim, monkeypatch):
    """A check that raised, and a number that is not finite, which is null."""
    for check in (broken, lambda: [Measurement("a", float("inf"), 1.0, 0.1)]):
        monkeypatch.setattr("odesim.lab.claims.all_claims", lambda check=check: [claim_of(Verdict.HOLDS, check)])
        jsonschema.validate(json.loads(odesim("verify", "--json").stdout), SCHEMA)


def test_what_builds_on_a_changed_verdict_is_named(odesim, monkeypatch):
    """The claims that build on it, also by way of another one; in the text, and those it builds on as well."""
    first = claim_of(Verdict.FAILS)
    second = replace(claim_of(Verdict.HOLDS), name="joma.second", depends=("joma.made",))
    third = replace(claim_of(Verdict.HOLDS), name="joma.third", depends=("joma.second",))
    monkeypatch.setattr("odesim.lab.claims.all_claims", lambda: [third, first, second])
    assert "see also what builds on it: joma.third, joma.second" in " ".join(odesim("verify", "joma.made").stdout.split())
    assert "  builds on: joma.made\n" in odesim("verify", "joma.second").stdout and "see also" not in odesim("verify", "joma.third").stdout


def test_every_claim_has_an_address():
    """The page has one anchor for each name, and a link for each claim that another builds on."""
    page = (ROOT / "docs/claims.md").read_text()
    assert re.findall(r'<a id="([\w.]+)"></a>', page) == [claim.name for claim in all_claims()]
    assert re.findall(r'<a href="#([\w.]+)">', page) == [name for claim in all_claims() for name in claim.depends]


def test_the_page_is_current(odesim):
    """docs/claims.md is what `odesim verify --page` prints."""
    assert (ROOT / "docs/claims.md").read_text() == claims_page(all_claims()) + "\n" == odesim("verify", "--page").stdout


@pytest.mark.parametrize("options", ["--list --json", "--page --list", "--schema --json"])
def test_options_that_exclude_each_other(options, odesim):
    done = odesim("verify", *options.split())
    assert (done.exit_code, done.stdout) == (2, "") and "exclude each other" in done.stderr


def test_list_checks_nothing(odesim, monkeypatch):
    """Every claim's name, and no run."""
    monkeypatch.setattr("odesim.lab.claims.check_claim", lambda claim: pytest.fail("checked"))
    done = odesim("verify", "--list")
    assert done.exit_code == 0 and all(f"{claim.name}: " in done.stdout for claim in all_claims())


def integrated(method: str, backend: str = "numba") -> Callable[[], Any]:
    """A run whose states say how far it came."""
    return lambda: library.integrate("joma.nonlinear", sizes={"M": 3}, method=method, backend=backend).t[-1] == 5


# what a check may run: each says whether it was whole
RUNS: dict[str, Callable[[], Any]] = {
    "explicit": integrated("tsit5"),
    "numpy": integrated("tsit5", "numpy"),
    "stiff": integrated("rodas5p"),
    "auto": integrated("auto"),
    "ensemble": lambda: np.all(
        library.ensemble("joma.nonlinear", sizes={"M": 2}, vary={"mu": "uniform(1,2)"}, members=40, save=3).status == 0
    ),
    "training": lambda: library.train("committee", settings={"N": 5}, steps=40).steps == 40,
    "numbers": lambda: np.linalg.norm(np.eye(3)) > 1,
}


def interrupted_at(moment: int, number: int, call: Callable[[], Any]) -> tuple[Any, int]:
    """(the result of call(), the functions of odesim that it called), with a signal at one of these calls."""
    count = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call" and "/odesim/" in frame.f_code.co_filename:
            count += 1
            if count == moment:
                signal.raise_signal(number)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return call(), count
    finally:
        sys.setprofile(before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python drops what is raised where a generator is closed
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("kind", RUNS)
def test_no_verdict_after_an_interrupt(kind, number, odesim, monkeypatch):
    """Ctrl-C and SIGTERM at any moment of a check: exit code 3, a sentence, and no verdict, for the run has been whole or not at all."""
    looked = []

    def check() -> list[Measurement]:
        for _ in range(2):
            looked.append(RUNS[kind]())
        return [Measurement("whole", float(all(looked)), 1.0, 0.0)]

    monkeypatch.setattr("odesim.lab.claims.all_claims", lambda: [claim_of(Verdict.HOLDS, check)])
    assert odesim("verify", "--quiet").exit_code == 0
    _, calls = interrupted_at(0, number, lambda: odesim("verify", "--quiet"))
    looked.clear()
    draw = random.Random(f"{kind} {number}")
    for _ in range(5):
        moment = draw.randrange(calls // 8, calls * 7 // 8)
        done, _ = interrupted_at(moment, number, partial(odesim, "verify", "--quiet"))
        assert (done.exit_code, done.stdout) == (3, ""), (moment, done.stdout)
        assert done.stderr == "odesim: interrupted; nothing more was written\n"
        assert all(looked)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("form", ["--json", "--quiet"])
def test_an_interrupt_keeps_the_claims_before_it(form, number, odesim, monkeypatch):
    """Of three claims the second is interrupted: the first is printed with its verdict, and how many are not checked. Exit code 3."""
    calls = []

    def check() -> list[Measurement]:
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(number)
        return [Measurement("one", 1.0, 1.0)]

    monkeypatch.setattr("odesim.lab.claims.all_claims", lambda: [claim_of(Verdict.HOLDS, check)] * 3)
    done = odesim("verify", form)
    name = claim_of(Verdict.HOLDS, check).name
    assert (done.exit_code, len(calls)) == (3, 2)
    if form == "--json":
        document = json.loads(done.stdout)
        assert [claim["name"] for claim in document["claims"]] == [name]
        assert (document["unchecked"], document["as_recorded"]) == ([name, name], False)
    else:
        assert f"interrupted: 2 claims from {name} on not checked" in " ".join(done.stdout.split())
