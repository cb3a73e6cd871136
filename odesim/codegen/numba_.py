"""Programs as numba modules: one readable kernel a Program, and the C functions that an integrator calls."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import sympy as sp

from odesim.codegen.cache import load_module
from odesim.codegen.nests import BLOCK, Nests
from odesim.codegen.printers import FUNCTIONS
from odesim.symbolic.expr import base_name
from odesim.symbolic.program import Program
from odesim.symbolic.system import System

OWN = ("exp", "log", "tanh", "expm1", "log1p", "erf", "pow")
RUNTIME = (
    "COMBINE", "EVENTS", "STAGE", "block_max", "block_sum", "combine_block", "float32", "float64", "ints", "matmul", "maximum", "minimum",
    "powi", "tree_max", "tree_sum",
)  # fmt: skip
TWO_MODES = ("combine_block", "matmul")
ROWS = 64  # more than any method has stages
PLAIN = ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "floor", "atan2")


@dataclass(frozen=True)
class Slot:
    """One entry of the address table: the length n, a size, the address of the numbers, of an array or of scratch."""

    kind: str
    name: str
    shape: tuple[Any, ...] = ()
    integer: bool = False


@dataclass(frozen=True)
class Text:
    """A generated module: its source, and what its address table holds, in order."""

    source: str
    slots: tuple[Slot, ...]
    numbers: tuple[str, ...]
    scratch: int


def module_text(system: System, right: Program, events: Program | None, *, dtype: str, strict: bool) -> Text:
    """The numba module of a System: rhs, stage, and events where it has any."""
    kernels = [_Kernel("rhs", system, right, dtype == "float64", fused=_fusible(system, right))]
    if events is not None:
        kernels.append(_Kernel("find_events", system, events, dtype == "float64"))
    params = [p for p in system.params if p.shape]
    numbers = tuple(p.name for p in system.params if not p.shape)
    slots = [Slot("length", "n_"), *(Slot("size", name) for name in system.size_names), Slot("blocks", "blocks_")]
    slots.append(Slot("numbers", "numbers"))
    slots += [Slot("array", p.name, p.shape, p.integer) for p in params]
    slots += [Slot("temporary", f"{k.name}.{r}", shape) for k in kernels for r, shape in k.temporaries.items()]
    slots += [Slot("scratch", "work_"), Slot("scratch", "part_")]
    scratch = max(k.nests.slots for k in kernels)
    body = "\n\n\n".join([*(k.definition() for k in kernels), *(_entry(k, slots, numbers, scratch, dtype) for k in kernels)])
    return Text(f"{_head(system, body, dtype, strict)}\n\n\n{body}\n", tuple(slots), numbers, scratch)


@cache
def runtime_key() -> str:
    """12 hex digits of the source that generated modules inline: a change of it makes new modules."""
    here = Path(__file__).parent
    text = "".join((here / f"{m}.py").read_text(encoding="utf-8") for m in ("runtime", "reduce", "vmath", "intrinsics"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _head(system: System, body: str, dtype: str, strict: bool) -> str:
    """The imports that a body needs, and how it is compiled."""
    used = set(re.findall(r"\w+", body))
    plain = [w for w in PLAIN if w in used]
    own = [w for w in OWN if w in used]
    end = "_strict" if strict else ""
    helpers = [f"{w}{end} as {w}" if end and w in TWO_MODES else w for w in RUNTIME if w in used]
    lines = [f'"""{system.name}, {dtype}{", strict" if strict else ""}: generated, runtime {runtime_key()}."""', ""]
    lines += [f"from math import {', '.join(plain)}", ""] if plain else []
    lines += ["import numba as nb", "", f"from odesim.codegen.runtime import {', '.join(helpers)}"]
    lines += [f"from odesim.codegen.vmath import {', '.join(own)}"] if own else []
    mode = "False" if strict else '{"contract"}'
    lines += ["", f'kernel = nb.njit(error_model="numpy", fastmath={mode})']
    lines += [f'entry = dict(cache=True, error_model="numpy", fastmath={mode})']
    return "\n".join(lines)


class _Kernel:
    """One Program as the definition of a function `name`."""

    def __init__(self, name: str, system: System, program: Program, double: bool, fused: bool = False):
        self.name, self.system, self.program, self.fused = name, system, program, fused
        self.nests = Nests(program, system.size_names, double)
        prologue = "combine_block(x_, k_, rows_, coef_, ns_, lo_, hi_, y_[lo_:hi_])" if fused else ""
        self.body = "\n".join(self.nests.emit(prologue))
        self.temporaries = {k: shape for k, shape in program.temporaries.items() if shape}
        reads = program.inputs() | program.sizes | self._extent_names()
        self.sizes = [s for s in system.size_names if s in reads]
        self.params = [p.name for p in system.params if p.name in reads]

    def _extent_names(self) -> set[str]:
        """Sizes in the shapes of states and outputs."""
        shapes = [*self.system.shapes.values(), *(tuple(self.program.extents[i] for i in ix) for ix in self.program.outputs.values())]
        return {x.name for shape in shapes for e in shape for x in sp.sympify(e).free_symbols}

    def arguments(self) -> list[str]:
        """Parameter names of the function, in order."""
        first = ["t", "y_", "x_", "k_", "rows_", "coef_", "ns_", "out_"] if self.fused else ["t", "y_", "out_"]
        return [*first, *self.sizes, *self.params, *self.temporaries, "work_", "part_"]

    def definition(self) -> str:
        """The function as text."""
        lines = ["@kernel", f"def {self.name}({', '.join(self.arguments())}):", *self._views(), self.body, *self._stores()]
        return "\n".join(lines)

    def _views(self) -> list[str]:
        """Named views on the flat state and the flat output."""
        out, at = [], sp.S.Zero
        for name, shape in self.system.shapes.items():
            at = self._view(out, name, "y_", at, shape)
        at = sp.S.Zero
        for name, indices in self.program.outputs.items():
            at = self._view(out, name, "out_", at, tuple(self.program.extents[i] for i in indices))
        return out

    def _view(self, lines: list[str], name: str, of: str, at: sp.Expr, shape: tuple[Any, ...]) -> sp.Expr:
        end = sp.expand(at + sp.prod(shape))
        if shape:
            turn = f".reshape(({', '.join(map(str, shape))}))" if len(shape) > 1 else ""
            lines.append(f"    {name} = {of}[{at}:{end}]{turn}")
        elif of == "y_":
            lines.append(f"    {name} = y_[{at}]")
        return end

    def _stores(self) -> list[str]:
        """Scalar outputs into the flat output."""
        lines, at = [], sp.S.Zero
        for name, indices in self.program.outputs.items():
            if not indices:
                lines.append(f"    out_[{at}] = {name}")
            at = sp.expand(at + sp.prod([self.program.extents[i] for i in indices]))
        return lines


def _fusible(system: System, program: Program) -> bool:
    """Whether the first pass runs along the only state and reads it in place, so that it can form it on its way."""
    shapes = list(system.shapes.items())
    if len(shapes) != 1 or len(shapes[0][1]) != 1:
        return False
    name, (extent,) = shapes[0]
    for s in program.passes[0]:
        if len(s.loops) != 1 or s.op not in ("map", "sum", "max") or sp.expand(program.extents[s.loops[0]] - extent) != 0:
            return False
        if any(base_name(a) == name and a.indices != s.loops for a in s.body.atoms(sp.Indexed)):
            return False
    return True


def _entry(k: _Kernel, slots: Sequence[Slot], numbers: Sequence[str], scratch: int, real: str) -> str:
    """The C function around a kernel: it finds the arrays behind the addresses."""
    unpack = [f"    at_ = ints(table_, {len(slots)})"]
    for place, slot in enumerate(slots):
        unpack += _unpack(k, slot, place, numbers, scratch, real)
    extra = k.arguments()[8 if k.fused else 3 :]
    if k.name == "find_events":
        total = sp.expand(sum((sp.prod([k.program.extents[i] for i in ix]) for ix in k.program.outputs.values()), sp.S.Zero))
        lines = ["@nb.cfunc(EVENTS, **entry)", "def events(table_, t, y_, g_):", *unpack]
        return "\n".join([*lines, f"    find_events({', '.join(['t', f'{real}(y_, n_)', f'{real}(g_, {total})', *extra])})"])
    lines = ["@nb.cfunc(STAGE, **entry)", "def stage(table_, t, y_, k_, rows_, coef_, ns_, s_, z_):", *unpack]
    lines.append(f"    k_, rows_, coef_ = {real}(k_, {ROWS} * n_).reshape(({ROWS}, n_)), ints(rows_, s_ + 1), float64(coef_, ns_)")
    lines.append(f"    x_, y_ = {real}(y_, n_), {real}(z_, n_)")
    if k.fused:
        first = ["t", "y_", "x_", "k_", "rows_", "coef_", "ns_", "k_[rows_[s_]]"]
    else:
        lines += [f"    for lo_ in range(0, n_, {BLOCK}):", f"        hi_ = min(lo_ + {BLOCK}, n_)"]
        lines.append("        combine_block(x_, k_, rows_, coef_, ns_, lo_, hi_, y_[lo_:hi_])")
        first = ["t", "y_", "k_[rows_[s_]]"]
    return "\n".join([*lines, f"    rhs({', '.join([*first, *extra])})"])


def _unpack(k: _Kernel, slot: Slot, place: int, numbers: Sequence[str], scratch: int, real: str) -> list[str]:
    """Lines that give a slot of the table its name."""
    wanted = k.arguments()
    if slot.kind in ("length", "size", "blocks"):
        return [f"    {slot.name} = at_[{place}]"]
    if slot.kind == "numbers":
        used = [(j, name) for j, name in enumerate(numbers) if name in wanted]
        return [f"    numbers_ = float64(at_[{place}], {len(numbers)})"] * bool(used) + [f"    {name} = numbers_[{j}]" for j, name in used]
    if slot.kind == "scratch":
        width = str(BLOCK) if slot.name == "work_" else "blocks_"
        return [f"    {slot.name} = float64(at_[{place}], {scratch} * {width}).reshape(({scratch}, {width}))"]
    kernel, _, name = slot.name.rpartition(".")
    if (kernel and kernel != k.name) or name not in wanted:
        return []
    count = sp.prod(slot.shape)
    turn = f".reshape(({', '.join(map(str, slot.shape))}))" if len(slot.shape) > 1 else ""
    return [f"    {name} = {'ints' if slot.integer else real}(at_[{place}], {count}){turn}"]


def load(text: Text, stem: str) -> ModuleType:
    """The compiled module of a text."""
    return load_module(text.source, stem)


COMBINE_TEXT = '''"""Linear combinations of stages, {dtype}{mode}: generated, runtime {key}."""

import numba as nb

from odesim.codegen.runtime import COMBINE, combine_block{end} as combine_block, float64, {dtype}, ints


@nb.cfunc(COMBINE, cache=True, error_model="numpy")
def combine(table, y, K, rows, coef, ns, lo, hi, dst):
    n = ints(table, 1)[0]
    k = {dtype}(K, {rows} * n).reshape(({rows}, n))
    combine_block({dtype}(y, n if y else 0), k, ints(rows, ns), float64(coef, ns), ns, lo, hi, {dtype}(dst, hi - lo))
'''


def load_combine(dtype: str, strict: bool) -> ModuleType:
    """The module with the C function combine, the same for all systems of a dtype."""
    end = "_strict" if strict else ""
    text = COMBINE_TEXT.format(dtype=dtype, mode=", strict" if strict else "", key=runtime_key(), end=end, rows=ROWS)
    return load_module(text.replace("float64, float64", "float64"), f"combine_{dtype}")


def known_words() -> Mapping[str, str]:
    """sympy function names that have numba code."""
    return {k: v for k, v in FUNCTIONS.items() if v in OWN + PLAIN + ("abs",)}
