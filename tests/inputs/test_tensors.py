"""Tensors of .safetensors files: what the package of this name writes is read; what is not in the format is one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.grammar import parse_value

W, B = np.arange(6.0).reshape(2, 3), np.array([-1.5, 2.0], np.float32)


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = {"fc.weight": entry("F64", [2, 3], 0, 48), "fc.bias": entry("F32", [2], 48, 56), "__metadata__": {"format": "pt"}}


DATA = W.tobytes() + B.tobytes()


def packed(header, data=DATA):
    """A file of the format, by hand: eight bytes, JSON, numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def read(path, name, rank=2):
    return parse_value(f"@{path}[{name}]", "--init W").array(rank)


def test_a_file_by_hand(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(packed(GOOD))
    np.testing.assert_array_equal(read(path, "fc.weight"), W)
    np.testing.assert_array_equal(parse_value(f"@{path}[fc.weight].T", "W").array(2), W.T)
    np.testing.assert_array_equal(read(path, " fc.bias ", 1), B)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "uint32"])
def test_what_the_package_writes(tmp_path, dtype):
    """The package safetensors as another writer."""
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(12).reshape(3, 4).astype(dtype), "b": np.array(7).astype(dtype), "c.d[0]": np.ones(5, dtype)}
    numpy.save_file(arrays, tmp_path / "a.safetensors", {"note": "x"})
    for name, array in arrays.items():
        found = read(tmp_path / "a.safetensors", name, array.ndim)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_bfloat16(tmp_path):
    """Sign, eight bits of exponent, seven of mantissa: 1.0 is 0x3f80, -2.5 is 0xc020, the least normal number 0x0080."""
    header = {"a": entry("BF16", [3], 0, 6)}
    (tmp_path / "a.safetensors").write_bytes(packed(header, np.array([0x3F80, 0xC020, 0x0080], "<u2").tobytes()))
    np.testing.assert_array_equal(read(tmp_path / "a.safetensors", "a", 1), [1.0, -2.5, 2.0**-126])


BAD = {
    "not JSON": (packed(b"{"), "its header is not JSON"),
    "deep": (packed(b"[" * 100_000), "its header is not JSON"),
    "a list": (packed(b"[]"), "no object"),
    "twice": (packed(b'{"a": 1, "a": 2}'), "not JSON"),
    "short": (b"\x01\x02", "longer than it"),
    "long header": ((2**63).to_bytes(8, "little"), "longer than it"),
    "cut": (packed(GOOD)[:-1], "does not end with its last tensor"),
    "more": (packed(GOOD) + b"x", "does not end with its last tensor"),
    "a gap": (packed({"a": entry("F64", [2, 3], 8, 56)}), "does not begin where the one before it ends"),
    "overlap": (packed({"a": entry("F64", [6], 0, 48), "b": entry("F64", [2], 40, 56)}), "does not begin where"),
    "a wrong size": (packed({"a": entry("F64", [7], 0, 48), "b": entry("F32", [2], 48, 56)}), "are not those of its shape"),
    "backwards": (packed({"a": entry("F8_E4M3", [0], 8, 0)}), "are not those of its shape"),
    "negative": (packed({"a": entry("F64", [-2, -3], 0, 48)}), "not whole numbers from 0"),
    "fraction": (packed({"a": entry("F64", [6.0], 0, 48)}), "not whole numbers from 0"),
    "true": (packed({"a": entry("F64", [True], 0, 8)}), "not whole numbers from 0"),
    "missing": (packed({"a": {"dtype": "F64", "shape": [6]}}), "has not just dtype"),
    "no entry": (packed({"a": 3}), "has not just dtype"),
}


@pytest.mark.parametrize("case", BAD)
def test_damaged(tmp_path, case):
    content, words = BAD[case]
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ParamError) as caught:
        read(tmp_path / "a.safetensors", "a")
    assert str(caught.value).startswith("--init W: ") and "is not a .safetensors file, or is damaged: " in str(caught.value)
    assert words in str(caught.value)


@given(st.binary(max_size=200), st.integers(0, 199), st.integers(0, 255))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(tmp_path, garbage, place, byte):
    """Garbage, and a good file with one byte changed: an array or a ParamError."""
    good = bytearray(packed(GOOD))
    good[place % len(good)] = byte
    for content in (garbage, bytes(good)):
        (tmp_path / "a.safetensors").write_bytes(content)
        try:
            read(tmp_path / "a.safetensors", "fc.weight")
        except ParamError as error:
            assert str(error).startswith("--init W: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@a.safetensors", "has many tensors: name one, as in a.safetensors[layer.weight]"),
        ("@a.safetensors[fc.wait]", "no tensor 'fc.wait'; choose from fc.bias, fc.weight; did you mean 'fc.weight'?"),
        ("@b.safetensors[x]", "there is no file 'b.safetensors'"),
        ("@c.safetensors[x]", "tensor 'x' of 'c.safetensors' has the type F8_E4M3, and what is read is F64,"),
    ],
)
def test_what_is_not_there(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    Path("a.safetensors").write_bytes(packed(GOOD))
    Path("c.safetensors").write_bytes(packed({"x": entry("F8_E4M3", [3], 0, 3)}, b"abc"))
    with pytest.raises(ParamError) as caught:
        parse_value(text, "--init W").array(2)
    assert words in str(caught.value)


def test_weights_start_a_run(tmp_path):
    """As initial values from Python and as rows of members; a wrong shape is refused by its name."""
    path = tmp_path / "a.safetensors"
    start = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    path.write_bytes(packed({"v": entry("F64", [2, 3], 0, 48), "one": entry("F64", [3], 48, 72)}, start.tobytes() + start[0].tobytes()))
    run = odesim.integrate("joma.nonlinear", initial={"v": f"@{path}[one]"}, save=[0.0, 1.0])
    np.testing.assert_array_equal(run.y["v"][0], start[0])
    members = odesim.ensemble("joma.nonlinear", vary={"v": f"@{path}[v]"}, save=[0.0, 1.0])
    np.testing.assert_array_equal(members["v"].values[:, 0], start)
    with pytest.raises(ParamError, match="v"):
        odesim.integrate("joma.nonlinear", initial={"v": f"@{path}[v]"})
