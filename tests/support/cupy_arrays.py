"""cupy's arrays as far as the reference training uses them, on numpy's memory: nothing meets an array of numpy's unasked."""

import types
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np

BINARY = ("add", "sub", "mul", "truediv", "matmul", "and", "or", "xor")
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
LINALG = ("solve", "svd")
METHODS = ("all", "any", "astype", "copy", "max", "mean", "min", "reshape", "sum", "swapaxes", "take", "transpose")
# numpy's functions that are used; another one is no attribute of the module
FUNCTIONS = (
    *("abs", "arange", "ascontiguousarray", "broadcast_to", "concatenate", "divide", "einsum", "empty", "empty_like", "exp", "eye"),
    *(
        "full_like",
        "isfinite",
        "log",
        "logaddexp",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "ones",
        "ones_like",
        "sign",
        "sqrt",
        "stack",
    ),
    *("subtract", "take_along_axis", "tanh", "where", "zeros", "zeros_like"),
)


class OnDevice:
    """An array that numpy takes for none: it meets its like and numbers, get() copies it out."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, held: Any) -> None:
        self.held = np.asarray(held)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} of an array on the device")

    def get(self, out: Any = None) -> Any:
        if out is None:
            return self.held.copy()
        assert out.flags.c_contiguous
        assert (out.shape, out.dtype) == (self.held.shape, self.held.dtype)
        out[...] = self.held
        return out

    @property
    def data(self) -> Any:
        """Where it lies: data.ptr."""
        return types.SimpleNamespace(ptr=self.held.ctypes.data)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.held.shape, "typestr": self.held.dtype.str, "data": (self.held.ctypes.data, False), "version": 3}

    def __getitem__(self, key: Any) -> "OnDevice":
        return type(self)(self.held[inner(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[inner(key)] = inner(value)

    def __iter__(self) -> Iterator["OnDevice"]:
        return map(OnDevice, self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __neg__(self) -> "OnDevice":
        return OnDevice(-self.held)

    def __invert__(self) -> "OnDevice":
        return OnDevice(~self.held)

    def __abs__(self) -> "OnDevice":
        return OnDevice(abs(self.held))

    @property
    def T(self) -> "OnDevice":
        return OnDevice(self.held.T)


def inner(value: Any) -> Any:
    """The memory of an array on the device; numbers, slices and lists of such as they are. Raises TypeError for an array of numpy's."""
    if isinstance(value, OnDevice):
        return value.held
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(map(inner, value))
    return value


def on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy's memory as one of the device's; out is given back as it came."""

    def call(*arguments: Any, **options: Any) -> Any:
        found = function(*map(inner, arguments), **{name: inner(value) for name, value in options.items()})
        if isinstance(found, tuple):  # of svd
            return tuple(map(OnDevice, found))
        return options["out"] if "out" in options else OnDevice(found)

    return call


def _operator(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)
    return lambda self, other: type(self)(method(self.held, np.asarray(other) if isinstance(other, np.generic) else inner(other)))


def _in_place(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    def call(self: OnDevice, other: Any) -> OnDevice:
        method(self.held, inner(other))
        return self

    return call


for _name in BINARY:
    setattr(OnDevice, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(OnDevice, f"__r{_name}__", _operator(f"__r{_name}__"))
    if _name != "matmul":  # which cupy does not have
        setattr(OnDevice, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in COMPARED:
    setattr(OnDevice, f"__{_name}__", _operator(f"__{_name}__"))
for _name in METHODS:
    setattr(OnDevice, _name, on_device(getattr(np.ndarray, _name)))
for _name in ("dtype", "itemsize", "nbytes", "ndim", "shape", "size"):
    setattr(OnDevice, _name, property(attrgetter(f"held.{_name}")))


def failure(name: str, base: type[Exception] = Exception) -> Any:
    """A class of exceptions that is cupy's."""
    return type(name, (base,), {"__module__": "cupy_backends.cuda.api"})


def make_arrays() -> types.ModuleType:
    """A module cupy with one device, called Pretended; its list `copied` has the shapes that came from numpy's memory."""
    cupy = types.ModuleType("cupy")
    found: Any = cupy
    found.copied = []

    def asarray(a: Any, dtype: Any = None) -> Any:
        if isinstance(a, OnDevice):
            return a if dtype is None or a.held.dtype == dtype else OnDevice(a.held.astype(dtype))
        found.copied.append(np.shape(a))
        return OnDevice(np.array(a, dtype))

    for name in FUNCTIONS:
        setattr(cupy, name, on_device(getattr(np, name)))
    found.asarray, found.ndarray, found.finfo, found.inf, found.nan = asarray, OnDevice, np.finfo, np.inf, np.nan
    found.linalg = types.SimpleNamespace(**{name: on_device(getattr(np.linalg, name)) for name in LINALG})
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: 1,
        getDevice=lambda: 0,
        getDeviceProperties=lambda k: {"name": b"Pretended"},
        CUDARuntimeError=failure("CUDARuntimeError"),
    )
    found.__version__, found.cuda = "13.4.0", types.SimpleNamespace(runtime=runtime)
    return cupy
