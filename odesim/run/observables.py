"""Observables of members at their saved times: expressions in one compiled loop, Python functions member by member."""

import ctypes
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp

from odesim.base.arrays import Array, Layout, extreme, extreme_entries, on_host
from odesim.base.errors import CodegenError
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.ir.passes import lower_expressions
from odesim.ir.scalars import Formulas
from odesim.ir.sizes import extents
from odesim.run.lane_kernel import module_text
from odesim.run.problem import named_slopes
from odesim.stepper.codes import UNDONE
from odesim.symbolic.indices import array_at
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS
from odesim.targets.native import load_native
from odesim.targets.observe import Observer
from odesim.targets.unroll import write_values

MOST_LINES = 1500  # beyond it a loop takes longer to compile than it saves
_MADE: Memo["Observed"] = Memo()

TEXT = """
@inlined
def see({arguments}):
    {lines}
    return ({outputs},)


@njit('void(int64)', **options)
def run(table):
    at = ints(table)
    states, seen, times, count, saved = doubles(at[0]), doubles(at[1]), doubles(at[2]), at[3], at[4]
    for i in range(count):
        {params}
        for k in range(saved):
            row = i * saved + k
            t = times[k]
            {states}
            {results}, = see({arguments})
            {put}
""".strip("\n")


@dataclass(frozen=True)
class Observed:
    """Some observables of a System with these sizes. whole: its integer parameters, or nothing if they are members' own."""

    compiled: CompiledRHS
    names: tuple[str, ...]
    sizes: dict[str, int]
    whole: Mapping[str, Any] | None

    @cached_property
    def observer(self) -> Observer:
        """The Observer of the same observables for one member."""
        system = self.compiled.system
        return Observer(replace(system, observables={name: system.observables[name] for name in self.names}, invariants=(), views=()))

    @cached_property
    def formulas(self) -> tuple[tuple[str, ...], Formulas | None]:
        """The observables that are expressions, and their values as text; None if there are none, or the text is too long."""
        system, shown = self.compiled.system, self.observer.expressions
        seen = {array_at(f"_seen{k}", free, system.axes): name for k, (name, free) in enumerate(shown.items())}
        outputs = {target: sp.sympify(system.observables[name]) for target, name in seen.items()}
        if not outputs or self.whole is None:
            return (), None
        try:
            text = write_values(system, lower_expressions(outputs, system.axes), self.sizes, self.whole)
        except CodegenError:
            return (), None
        return (tuple(shown), text) if len(text.code) <= MOST_LINES else ((), None)

    @cached_property
    def function(self) -> Callable[[int], None]:
        """The compiled loop over members."""
        formulas = self.formulas[1]
        assert formulas is not None
        name = self.compiled.system.name
        address = load_native(loop_text(name, formulas), f"{name.replace('.', '_')}_seen", ["run"])["run"]
        return ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)

    def fill(self, request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array]) -> None:
        """chunk.observed (N, T, q): values at the saved times that a member reached, NaN elsewhere."""
        views = dict(zip(self.names, request.outputs.observed.split(chunk.observed).values(), strict=True))
        fast, formulas = self.formulas
        if formulas is not None:
            shapes = tuple(views[name].shape[2:] for name in fast)
            flat = self._computed(formulas, request.times, numbers, chunk, params)
            for name, values in Layout(fast, shapes).split(flat).items():
                views[name][...] = values
            self._blank_overflows(request, numbers, chunk, params, views)
        reached = request.times <= np.where(chunk.status == UNDONE, -np.inf, chunk.t_end)[:, None]
        if len(fast) < len(self.names):
            for i in np.flatnonzero(reached.any(axis=1)):
                self._one(request, numbers, chunk, int(i), int(reached[i].sum()), params, [n for n in self.names if n not in fast])
        chunk.observed[~reached] = np.nan

    def _computed(self, formulas: Formulas, times: Array, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array]) -> Array:
        count, saved, _ = chunk.y.shape
        seen, y = np.empty((count, saved, len(formulas.outputs))), np.ascontiguousarray(on_host(chunk.y), np.float64)
        table = np.zeros(5 + 2 * len(formulas.values), np.int64)
        alive = [np.ascontiguousarray(times), y, seen]
        table[:5] = y.ctypes.data, seen.ctypes.data, alive[0].ctypes.data, count, saved
        for k, name in enumerate(formulas.values):
            varies = name in params
            values = np.ascontiguousarray(params[name] if varies else numbers.params[name], np.float64)
            alive.append(values)
            table[5 + 2 * k], table[6 + 2 * k] = values.ctypes.data, values.size // max(count, 1) if varies else 0
        self.function(table.ctypes.data)
        return seen

    def _blank_overflows(
        self, request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], views: Mapping[str, Array]
    ) -> None:
        """Writes NaN where an expression overflows unseen, as the Observer does for single runs."""
        for i in np.flatnonzero(extreme_members(request, numbers, chunk, params, {})).tolist():
            every = {**numbers.params, **{name: values[i] for name, values in params.items()}}
            states = request.layout.split(np.asarray(on_host(chunk.y[i]), np.float64))
            for k, t in enumerate(request.times.tolist()):
                here = {**every, **{name: values[k] for name, values in states.items()}, "t": t}
                for name, where in self.observer.overflows(self.sizes, here).items():
                    views[name][i, k] = np.where(where, np.nan, views[name][i, k])

    def _one(
        self, request: EnsembleRequest, numbers: Numbers, chunk: Chunk, i: int, reached: int, params: Mapping[str, Array], names: list[str]
    ) -> None:
        """Fills the rows that member i reached, with functions on arrays."""
        member_params = {name: values[i] if values.ndim > 1 else values[i].item() for name, values in params.items()}
        every = {**numbers.params, **member_params}
        states, slopes = request.layout.split(on_host(chunk.y[i, :reached])), named_slopes(self.compiled.bind(self.sizes, every))
        values_seen = self.observer(request.times[:reached], states, self.sizes, every, slopes)
        views = dict(zip(self.names, request.outputs.observed.split(chunk.observed).values(), strict=True))
        for name in names:
            views[name][i, :reached] = values_seen[name]


def extreme_members(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> Array:
    """Which members (N,) have numbers in which a part of a formula may overflow. params, initial: their own {name: (N, ...)}."""
    count, dtype, names = len(chunk.status), request.dtype, {p.name for p in request.system.params}
    shared = {
        name: np.asarray(v) for name, v in {**numbers.params, **numbers.initial}.items() if name not in params and name not in initial
    }
    if extreme((value for value in shared.values() if value.dtype.kind == "f"), dtype):
        return np.ones(count, bool)
    seen = np.zeros(count, bool)
    for values in (chunk.y, chunk.y_end, *(v for n, v in params.items() if n in names), *initial.values()):
        if values.size:
            seen |= on_host(extreme_entries(values, dtype).reshape(count, -1).any(axis=1))
    return seen


def observe(request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array]) -> None:
    """Fills chunk.observed with the observables of the request. params {name: (N, *shape)}: members' own values."""
    if not request.outputs.observe:
        return
    integers = {p.name for p in request.system.params if p.integer}
    whole = None if integers & set(params) else {name: numbers.params[name] for name in integers}
    _observed(request.compiled, request.outputs.observe, numbers.sizes, whole).fill(request, numbers, chunk, params)


def _observed(compiled: CompiledRHS, names: tuple[str, ...], sizes: Mapping[str, int], whole: Mapping[str, Any] | None) -> Observed:
    """The Observed of these observables, made once a process."""
    values = None if whole is None else tuple(np.asarray(v).tobytes() for v in whole.values())
    key = (IdentityKey(compiled), names, tuple(sorted(sizes.items())), values)
    return _MADE(key, lambda: Observed(compiled, names, dict(sizes), whole))


def observed_shapes(compiled: CompiledRHS, names: tuple[str, ...], numbers: Numbers) -> dict[str, tuple[int, ...]]:
    """{observable: shape}: of an expression by its indices, of a Python function by its value at the start of a typical member."""
    system, observed = compiled.system, _observed(compiled, names, numbers.sizes, None)
    shapes = {}
    for name, free in observed.observer.expressions.items():
        shapes[name] = extents(tuple(system.axes[i] for i in free), numbers.sizes)
    if len(shapes) < len(names):
        slopes = named_slopes(compiled.bind(numbers.sizes, numbers.params))
        start = {name: np.asarray(value, np.float64)[None] for name, value in numbers.initial.items()}
        start_values = observed.observer(np.array([numbers.t0]), start, numbers.sizes, numbers.params, slopes)
        shapes |= {name: start_values[name].shape[1:] for name in names if name not in shapes}
    return {name: shapes[name] for name in names}


def observed_key(system: System, names: tuple[str, ...]) -> str:
    """_ and 8 hex digits of the code of these observables; empty without any."""
    if not names:
        return ""
    digest = hashlib.sha256()
    for name in names:
        e = system.observables[name]
        digest.update(sp.srepr(e).encode() if isinstance(e, sp.Basic) else getattr(getattr(e, "__code__", None), "co_code", b""))
    return f"_{digest.hexdigest()[:8]}"


def loop_text(model: str, f: Formulas) -> str:
    """The text of the module: run(table) computes the formulas for all members and saved times."""
    from odesim.base.parsing import fit

    states, params_read = f.reads("y"), f.reads("p")
    arguments = ["t", *(f"y{d}" for d in states), *(f"p{k}" for k in params_read)]
    params = []
    for k, (first, end) in enumerate(pairwise([*f.values.values(), f.count])):
        params.append(f"source, gap = doubles(at[{5 + 2 * k}]), at[{6 + 2 * k}]")
        params += [f"p{q} = source[i * gap + {q - first}]" for q in range(first, end) if q in params_read]
    body = fit(
        TEXT,
        arguments=", ".join(arguments),
        lines="\n".join(f.lines) or "pass",
        outputs=", ".join(f.outputs),
        params="\n".join(params) or "pass",
        states="\n".join(f"y{d} = states[row * {f.states} + {d}]" for d in states) or "pass",
        results=", ".join(f"o{k}" for k in range(len(f.outputs))),
        put="\n".join(f"seen[row * {len(f.outputs)} + {k}] = o{k}" for k in range(len(f.outputs))),
    )
    return module_text(f"{model}, observables of members", body, strict=True)
