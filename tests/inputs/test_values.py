"""VALUE, spans and save grids as people type them: right numbers or one sentence, and never anything else."""

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from odesim.base.errors import ParamError
from odesim.inputs.grammar import FILLS, Value, parse_assignment, parse_size, parse_value
from odesim.inputs.times import Save, parse_save, parse_span, save_times

HOSTILE = (
    "__import__('os').system('touch hacked')",
    "().__class__.__bases__[0].__subclasses__()",
    "exec(open('x').read())",
    "lambda: 1",
    "Symbol('x')",
    "sin(1)",
    "9**9**9",
    "1 if 1 else 2",
    "[1, __import__('os')]",
    "[x for x in (1,)]",
    "${HOME}",
    "`id`",
    "%s%n",
    "\x00",
    "1\x002",
    "\ud800",
    "１２",  # full-width digits
    "٣",
    "1_000",
    "0x10",
    "1j",
    "True",
    "None",
    "{}",
    '"1"',
    "[" * 100_000,
    "[" * 40 + "1" + "]" * 40,
    "9" * 100_000,
    "1e" + "9" * 5000,
    "-" * 5000 + "1",
    "linspace(" * 1000,
)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", 3),
        (" -0.5 ", -0.5),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("1e-3", 1e-3),
        ("007", 7),
        ("1,2,3", [1, 2, 3]),
        (" 0.3 , -0.8e1", [0.3, -8.0]),
        ("[0.3, -0.8]", [0.3, -0.8]),
        ("[[1,2],[3,4.5]]", [[1, 2], [3, 4.5]]),
        ("[\n [1, 2],\n [3, 4]\n]", [[1, 2], [3, 4]]),
        ("[[[7]]]", [[[7]]]),
    ],
)
def test_what_is_written_is_what_is_read(text, wanted):
    """Numbers, comma lists and JSON arrays, with spaces and exponents."""
    value = parse_value(text, "--set x")
    assert value.data == wanted
    np.testing.assert_array_equal(value.fill(np.shape(wanted), rng()), wanted)


@pytest.mark.parametrize(
    ("text", "shape", "wanted"),
    [
        ("2", (2, 3), np.full((2, 3), 2.0)),
        ("linspace(-1,2)", (4,), [-1, 0, 1, 2]),
        ("linspace( 0 , 5 )", (2, 3), [[0, 1, 2], [3, 4, 5]]),
        ("linspace(3,4)", (1,), [3]),
        ("logspace(-2,1)", (4,), [0.01, 0.1, 1, 10]),
        ("uniform(2,3)", (2, 2), rng(5).uniform(2, 3, (2, 2))),
        ("normal(1,0.5)", (3,), rng(5).normal(1, 0.5, 3)),
    ],
)
def test_a_fill_takes_the_shape_it_is_asked_for(text, shape, wanted):
    """C order, both ends included, random numbers from the generator alone. 1e-15: one rounding of 10**x."""
    np.testing.assert_allclose(parse_value(text, "x").fill(shape, rng(5)), wanted, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("inf", "inf is not a finite number"),
        ("-Infinity", "not a finite number"),
        ("nan", "nan is not a finite number"),
        ("1,nan,3", "nan is not a finite number"),
        ("1e400", "'1e400' overflows"),
        ("[1, -1e999]", "'-1e999' overflows"),
        ("1,,2", "missing before a comma"),
        ("1,2,", "missing before ]"),
        (",", "missing before a comma"),
        ("[]", "missing before ]"),
        ("[1, 2", "] is missing"),
        ("[1 2]", "'1 2' is not a number"),
        ("[1, 2]]", "follows the last ]"),
        ("[1,2],[3,4]", "one more pair of brackets"),
        ("[[1][2]]", "comma is missing"),
        ("[[1, 2], [3]]", "different lengths, 2 and 1"),
        ("[[[1, 2]], [[1, 2, 3]]]", "different lengths, 2 and 3"),
        ("[1, [2]]", "mixed"),
        ("abc", "'abc' is not a number; write a number, 1,2,3"),
        ("0:1", "'0:1' is not a number; write uniform(0,1) for numbers drawn at random, linspace(0,1) for even ones"),
        ("-1.5:2e3:10", "write uniform(-1.5,2e3) for"),
        ("uniform[0,1]", "'uniform[0,1]' is not a value; uniform takes two numbers, as in uniform(0,1)"),
        ("normal 0 1", "normal takes two numbers, as in normal(0,1)"),
        ("P.csv", "a file is written @P.csv"),
        ("@", "a file name must follow @"),
        ("@P.txt", "no file format '.txt'"),
        ("linpsace(0,1)", "did you mean 'linspace'?"),
        ("linspace(0)", "two numbers"),
        ("linspace(0,1,2)", "two numbers"),
        ("linspace(0,inf)", "inf is not a finite number"),
        ("linspace(-1e308,1e308)", "too far apart"),
        ("uniform(1,1)", "the larger one"),
        ("normal(0,-1)", "must be positive"),
        ("logspace(0,400)", "exponents lie in [-308, 308]"),
    ],
)
def test_a_bad_value_is_one_sentence(text, words):
    """The message starts with the place and holds what was written and what can be."""
    with pytest.raises(ParamError) as caught:
        parse_value(text, "--set x")
    assert str(caught.value).startswith("--set x: ")
    assert words in str(caught.value)


def check_only_numbers_or_a_sentence(text):
    try:
        value = parse_value(text, "--set x")
    except ParamError as e:
        message = str(e)
        assert message.startswith("--set x: ")
        assert message.isprintable() and len(message) < 500, "one short line, whatever was typed"
        return
    pickle.dumps(value)
    if value.kind in ("number", "list"):
        assert np.isfinite(np.array(value.data, dtype=float)).all()
    else:
        assert value.kind == "file" or value.data[0] in FILLS


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t)[:20])
def test_hostile_text_is_never_run(text, tmp_path, monkeypatch):
    """Nothing is evaluated, nothing grows without bound, and the one exception is ParamError."""
    monkeypatch.chdir(tmp_path)
    for wrapped in (text, f"[{text}]", f"1,{text}", f"linspace(0,{text})", f"@{text}.csv"):
        check_only_numbers_or_a_sentence(wrapped)
    for parse in (parse_assignment, parse_size, parse_span, parse_save):
        for wrapped in (text, f"P={text}", f"{text}x()=1", f"log:{text}", f"0:{text}"):
            with pytest.raises(ParamError):
                parse(wrapped)
    with pytest.raises(ParamError):
        parse_value(f"@{text}.csv", "x").array(1)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text("0123456789.eE+-[](),@: infaslpcgourm="), st.sampled_from(HOSTILE)))
def test_any_text_is_numbers_or_a_sentence(text):
    check_only_numbers_or_a_sentence(text)
    for parse in (parse_assignment, parse_size, parse_span, parse_save):
        try:
            parse(text)
        except ParamError as e:
            assert str(e).isprintable()


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, array_shapes(max_dims=4, max_side=3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_nested_lists_come_back_bit_for_bit(a):
    """JSON of an array, and Python's own text of it, give its bits again."""
    for text in (json.dumps(a.tolist()), repr(a.tolist()), json.dumps(a.tolist(), indent=1)):
        again = np.array(parse_value(text, "x").data, dtype=float)
        assert again.tobytes() == a.tobytes()


def test_assignments_and_sizes():
    name, value = parse_assignment(" eta_Y = 1e-3 ")
    assert (name, value) == ("eta_Y", Value("number", 1e-3, "1e-3", "--set eta_Y"))
    assert parse_size("M=1000") == parse_size("M=1e3") == ("M", 1000)


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (parse_assignment, "", "NAME=VALUE, not ''"),
        (parse_assignment, "P", "NAME=VALUE, not 'P'"),
        (parse_assignment, "=3", "NAME=VALUE, not '=3'"),
        (parse_assignment, "P=", "--set P: the value is empty"),
        (parse_assignment, "a b=1", "'a b' is not a plain name"),
        (parse_assignment, "P=uniform(0,1", "--set P: 'uniform(0,1': a ) is missing"),
        (parse_assignment, "P=unifrom(0,1", "no function 'unifrom'; choose from"),
        (parse_size, "M=0", "--size M=0: a size is at least 1"),
        (parse_size, "M=-3", "--size M=-3: a size is at least 1"),
        (parse_size, "M=2.5", "whole number"),
        (parse_size, "M=1e-3", "whole number"),
        (parse_size, "M=1e16", "whole number"),
        (parse_size, "M=99999999999999999999", "whole number"),
        (parse_size, "M", "--size takes NAME=N"),
        (parse_size, "M=", "number is missing"),
        (parse_span, "5:1", "5:1 does not go forward"),
        (parse_span, "1:1", "does not go forward"),
        (parse_span, "0:inf", "inf is not a finite number"),
        (parse_span, "-1e308:1e308", "not finite"),
        (parse_span, "10", "T0:T1"),
        (parse_span, "", "T0:T1"),
        (parse_span, "0:1:2", "T0:T1"),
        (parse_span, "a:b", "'a' is not a number"),
        (parse_save, "-4", "--save -4: there must be at least 2"),
        (parse_save, "1", "at least 2"),
        (parse_save, "log:0", "--save log:0: there must be at least 2"),
        (parse_save, "log:1", "at least 2"),
        (parse_save, "log:2.5", "whole number"),
        (parse_save, "2.5", "the one time 2.5 is written with a comma"),
        (parse_save, "1,2,", "number is missing"),
        (parse_save, "lin:5", "N, log:N or T1,T2"),
        (parse_save, "1e3", "whole number"),
        (parse_save, "999999999999", "at most"),
        (parse_save, "1,3,2", "2 follows 3"),
        (parse_save, "1,1", "1 follows 1"),
        (parse_save, "1,nan", "nan is not a finite number"),
        (parse_save, "", "number is missing"),
    ],
)
def test_a_bad_option_is_one_sentence(parse, text, words):
    with pytest.raises(ParamError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_save_grids():
    """Even and logarithmic grids against their definitions; given times as they are."""
    np.testing.assert_array_equal(save_times(None, 1, 3), [1, 3])
    np.testing.assert_array_equal(save_times(5, 1, 3), [1, 1.5, 2, 2.5, 3])
    np.testing.assert_array_equal(save_times(parse_save("5"), 1, 3), [1, 1.5, 2, 2.5, 3])
    np.testing.assert_array_equal(save_times(parse_save("0,0.5,2"), 0, 2), [0, 0.5, 2])
    np.testing.assert_array_equal(save_times(np.array([0.5]), 0, 2), [0.5])
    np.testing.assert_allclose(save_times(parse_save("log:4"), 1, 3), [1, 1 + 2e-4, 1 + 2e-2, 3], rtol=1e-15)
    np.testing.assert_array_equal(save_times(parse_save("log:2"), 1, 3), [1, 3])


@pytest.mark.parametrize("n", [3, 200, 1000, 1001, 2000, 5000, 39_800, 1_000_000])
def test_what_alternates_keeps_its_phase_by_default(n):
    """What comes again after 2, 3, 4, 6 or 8 updates has all its values in any so many saved times in a row, but for the last one.

    An even stride would save a constant of what alternates.
    """
    times = save_times(Save(200, updates=1000), 7, n + 7, whole=True)
    assert (times[0], times[-1]) == (7, n + 7)
    assert len(times) == n + 1 if n <= 1000 else 200 < len(times) <= 1002
    for period in (2, 3, 4, 6, 8) if n > 3 else (2,):
        phases = times[:-1] % period
        seen = np.lib.stride_tricks.sliding_window_view(phases, period)
        assert np.all(np.sort(seen, axis=1) == np.arange(period))


def test_a_number_of_times_is_as_given():
    """Of a flow, and of a Map where it was asked for."""
    assert len(save_times(Save(200, updates=1000), 0, 5)) == 200
    assert len(save_times(200, 0, 1000, whole=True)) == 200  # a number of times that was given


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 50), st.booleans())
def test_a_save_grid_increases_and_keeps_both_ends(t0, length, n, log):
    t1 = t0 + length
    times = save_times(parse_save(f"log:{n}" if log else str(n)), t0, t1)
    assert len(times) == n and times[0] == t0 and times[-1] == t1
    assert (np.diff(times) > 0).all()


@pytest.mark.parametrize(
    ("save", "words"),
    [
        (1, "at least 2"),
        (-4, "save -4"),
        (True, "whole number"),
        (2.5, "whole number"),
        ("x", "'x' is not a number"),
        ({}, "takes None, a number of times"),
        ([], "one row"),
        ([[0, 1]], "one row"),
        ([0, 3], "3 lies outside the span 0:2"),
        ([0, math.nan], "nan is not a finite time"),
        ([1, 0], "0 follows 1"),
    ],
)
def test_a_bad_save_is_one_sentence(save, words):
    """A text is read as on the command line."""
    with pytest.raises(ParamError) as caught:
        save_times(save, 0, 2)
    assert words in str(caught.value)


@pytest.mark.parametrize("t1", [0.3, -0.7, 3.3, 1e9])
def test_two_times_that_round_to_an_end(t1):
    """Both are shown with the digits that people write, and where they are one."""
    for pair in ([t1, np.nextafter(t1, np.inf)], [-1 - 2**-52, -1.0]):
        with pytest.raises(ParamError, match=f"save: {pair[0]!r} and {float(pair[1])!r} are one time but for rounding, an end of the span"):
            save_times(pair, -1, t1)


def test_a_span_too_short_for_its_grid_is_said():
    with pytest.raises(ParamError, match="too short for 100 different times"):
        save_times(100, 1e16, 1e16 + 4)


def test_reading_what_was_typed_needs_no_numpy():
    """The command line parses its options before it imports anything heavy."""
    code = (
        "import sys, odesim.inputs.grammar as v, odesim.inputs.times as t; v.parse_value('[1,2]', 'x'); t.parse_save('log:9'); "
        "print({'numpy', 'sympy'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
