"""Values in files: right numbers or one sentence, and nothing in them is run."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odesim.base.errors import ParamError
from odesim.inputs.grammar import parse_value


@pytest.mark.parametrize(
    ("text", "rank", "wanted"),
    [
        ("1,2\n3,4\n", 2, [[1, 2], [3, 4]]),
        ("\ufeff1, 2\r\n3 ,4e0", 2, [[1, 2], [3, 4]]),
        ("# tokens\n\n1,2\n", 2, [[1, 2]]),
        ("1,2\n", 1, [1, 2]),
        ("1\n2\n", 1, [1, 2]),
        ("1\n2\n", 2, [[1], [2]]),
        ("1,2\n3,4\n", 1, [[1, 2], [3, 4]]),
        ("5\n", 0, 5),
        ("1;2\n3;4\n", 2, [[1, 2], [3, 4]]),
        ("mu, v_start\n1,2\n3,4\n", 2, [[1, 2], [3, 4]]),
        ('# from a spreadsheet\n"mu[0]";"mu[1]"\r\n1;2\r\n', 2, [[1, 2]]),
        ("µ\n1\n2\n", 1, [1, 2]),
        ("1.5e+00 2e0\n3 4\n", 2, [[1.5, 2], [3, 4]]),  # as numpy.savetxt writes it
        ("1\t2\n3\t4\n", 2, [[1, 2], [3, 4]]),
        ('"1","2"\n"3","4"\n', 2, [[1, 2], [3, 4]]),
        ("saliency of a token\n1\n2\n", 1, [1, 2]),
    ],
)
def test_csv(tmp_path, text, rank, wanted):
    """Two axes, rows and columns; one row or column is one axis where one is wanted."""
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    read = parse_value(f"@{tmp_path}/a.csv", "x").array(rank)
    assert read is not None and read.shape == np.shape(wanted)
    np.testing.assert_array_equal(read, wanted)


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("t,u\n0,1\n0.5,3\n", "u", [1, 3]),
        ("t,u\n0,1\n0.5,3\n", " t ", [0, 0.5]),
        ("t;note;mu[0]\n0;a;1\n1;;3\n", "mu[0]", [1, 3]),  # other columns may hold what they like
        ("t u\n0 1\n2 3\n", "u", [1, 3]),
        ("t\n0\n2\n", "t", [0, 2]),
        ('t,"u, V"\n0,1\n0.5,"3"\n', "u, V", [1, 3]),
        ('t\t"u, V"\n0\t1\n2\t3\n', "u, V", [1, 3]),
        ('t  "u of V" \n0  1\n2  3\n', "u of V", [1, 3]),
    ],
)
def test_a_column_by_its_name(tmp_path, text, column, wanted):
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(parse_value(f"@{tmp_path}/a.csv[{column}]", "x").array(1), wanted)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("t,u\n0,1\n", "v", "no column 'v'; choose from t, u"),
        ("t,u,u\n0,1,2\n", "u", "two columns are named 'u'"),
        ("0,1\n", "u", "has no column 'u': its first line is not one of names"),
        ("t,u\n0,x\n", "u", "line 2: 'x' is not a number"),
        ("t,u\n0,1\n0\n", "t", "line 3: 1 value, where line 1 has 2"),
        ("t u\n0\n", "u", "line 2: 1 value, where line 1 has 2"),
    ],
)
def test_a_column_that_is_not_there(tmp_path, text, column, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ParamError) as caught:
        parse_value(f"@{tmp_path}/a.csv[{column}]", "--set u").array(1)
    assert str(caught.value).startswith("--set u: ") and words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1,2\n3\n", "line 2: 1 value, where line 1 has 2"),
        (b"1,2\n\n3,x\n", "line 3: 'x' is not a number"),
        (b"1,nan\n", "line 1: nan is not a finite number"),
        (b"1,1e400\n", "line 1: '1e400' overflows"),
        (b"1,\n", "line 1: a number is missing"),
        (b"1_0,2\n", "'1_0' is not a number"),
        (b"mu,v\n1,2\nmu,v\n", "line 3: 'mu' is not a number"),
        (b"mu,2\n1,2\n", "line 1: 'mu' is not a number"),
        (b"nan,inf\n1,2\n", "line 1: nan is not a finite number"),
        (b"mu,v\n1,2,3\n", "line 2: 3 values, where line 1 has 2"),
        (b"mu;v\n0,5;1\n", "line 2: '0,5' has a decimal comma; write a point"),
        (b'mu,v\n"0,5",1\n', "line 2: '0,5' has a decimal comma; write a point"),
        (b'mu,v\n"0,5\n', "line 2: '\"0' is not a number"),
        (b"mu,v\n", "holds no numbers"),
        (b"\n# nothing\n", "holds no numbers"),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_a_bad_csv_names_its_line(tmp_path, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ParamError) as caught:
        parse_value(f"@{tmp_path}/a.csv", "--set P").array(2)
    assert str(caught.value).startswith("--set P: ") and words in str(caught.value)


def npy(array, tmp_path, **options):
    np.save(tmp_path / "a.npy", array, **options)
    return (tmp_path / "a.npy").read_bytes()


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)[:2]), np.arange(3, dtype=">i4"), np.float32(2)], ids=str
)
def test_npy(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(parse_value(f"@{tmp_path}/a.npy", "x").array(np.ndim(array)), array)


def test_bad_npy_files_are_refused(tmp_path):
    """Pickles are never opened; garbage, cut files, headers that promise too much, folders and missing files are one sentence."""

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "hacked",))

    good = npy(np.arange(4.0), tmp_path)
    pickled = npy(np.array([Trap()], dtype=object), tmp_path, allow_pickle=True)
    bomb = good.replace(b"(4,)", b"(999999999999999,)")
    for content in (pickled, pickle.dumps(Trap()), b"", b"garbage", good[:90], good[:-1], bomb, b"PK\x03\x04" + good):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(ParamError, match=r"^--set P: .*a\.npy"):
            parse_value(f"@{tmp_path}/a.npy", "--set P").array(1)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ParamError, match="cannot read"):
        parse_value(f"@{tmp_path}/folder.npy", "--set P").array(1)
    with pytest.raises(ParamError, match=r"there is no file .*none\.csv"):
        parse_value(f"@{tmp_path}/none.csv", "--set P").array(1)
    assert not (tmp_path / "hacked").exists()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_bytes_in_a_file_are_numbers_or_a_sentence(tmp_path, data):
    """Random bytes, and a sound .npy file with a few bytes changed."""
    good = npy(np.arange(3.0), tmp_path)
    at = data.draw(st.lists(st.integers(0, len(good) - 1), max_size=3))
    damaged = bytearray(good)
    for k in at:
        damaged[k] = data.draw(st.integers(0, 255))
    cells = st.text("0123456789.,-e\n\r#x ", max_size=40).map(str.encode)
    name, content = data.draw(st.sampled_from(["a.npy", "a.csv"])), data.draw(st.one_of(st.just(bytes(damaged)), st.binary(), cells))
    (tmp_path / name).write_bytes(content)
    try:
        array = parse_value(f"@{tmp_path / name}", "x").array(2)
    except ParamError as e:
        assert "\n" not in str(e)
    else:
        assert isinstance(array, np.ndarray)
