"""Programs as numba modules: a kernel for each Program, the C functions that an integrator calls, imports, and the address table."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Arena, Array, aligned
from odesim.base.device import TURNED, gemm_address
from odesim.base.parsing import margin
from odesim.ir.program import Program
from odesim.ir.scalars import Formulas
from odesim.ir.sizes import extents
from odesim.symbolic.system import System
from odesim.targets.cache import source_of
from odesim.targets.expressions import PythonText, whole
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.nest import BLOCK, WORK
from odesim.targets.numba_text import LATE, ROWS, Kernel, RightSide, shape_text

IN_LOOPS = {
    "stages": (
        "COMBINE", "EVENTS", "STAGE", "add_scaled", "block_dot", "block_max", "block_sum", "combine_block", "constant_weight",
        "maximum", "minimum", "powi", "scale_weights", "split_terms", "tree_max", "tree_sum",
    ),
    "matrices": ("product", "blas_product"),
    "views": ("block", "float32", "float64", "ints", "load", "part_of", "reload", "row_block", "store", "vector"),
}  # fmt: skip
"""{module of the runtime: its functions} that kernels of loops call."""
TWO_MODES = ("combine_block", "product")
SCRATCH = ("work_", "part_", "scales_", "weights_", "state_", "early_", "late_", "amounts_", "base_")
RUNTIME = "odesim.runtime"
INLINED = tuple(f"{RUNTIME}.{name}" for name in ("constants", "stages", "sums", "matrices", "elementary", "intrinsics", "views"))
"""Modules that every generated module may inline."""
OWN = {
    "elementary": ("exp", "log", "tanh", "expm1", "log1p", "erf", "pow", "asinh", "acosh", "atanh", "sinh", "cosh"),
    "intrinsics": ("floor",),
    "circular": ("sin", "cos", "tan", "sinc", "sinc_slope", "asin", "acos", "atan", "atan2"),
    "special": ("erfc", "lambertw", "lambertw_lower", "binomial"),
    "views": ("clip", "on_axis", "wrap"),
    "sums": ("add_down", "add_up"),
    "matrices": ("invert",),
    "normals": ("random_bits", "pair_of_bits", "normal_of_step", "normals_of_path", "whole"),
}
"""{module of the runtime: its functions}: the same bits on every machine, as sqrt has, the one function of the C library."""
NEEDS = {"circular": ("circular",), "special": ("special", "circular"), "normals": ("normals", "circular")}
"""{module of the runtime: what is inlined with its functions} beside INLINED."""


@dataclass(frozen=True)
class TableEntry:
    """One entry of an address table: the length n, a size, or the address of the scalar parameters, an array, scratch memory or BLAS."""

    kind: str
    name: str
    shape: tuple[Any, ...] = ()
    integer: bool = False


@dataclass(frozen=True)
class ModuleText:
    """A generated module: its source, and the entries of its address table in order.

    numbers: scalar parameters. scratch: blocks of scratch memory. scales: numbers stored beside a stage, 0 where stages are not
    scaled. local: the state is computed block by block in scratch memory unless the caller needs it. products: extents of the matrix
    products that BLAS may compute. loops: those of loops.
    """

    source: str
    entries: tuple[TableEntry, ...]
    numbers: tuple[str, ...]
    scratch: int
    scales: int
    local: bool
    products: tuple[tuple[Any, ...], ...] = ()
    loops: tuple[Any, ...] = ()

    @cached_property
    def parameters(self) -> tuple[tuple[int, TableEntry], ...]:
        """The entries of parameters, with their places."""
        return tuple((n, entry) for n, entry in enumerate(self.entries) if entry.kind in ("numbers", "array"))

    @cached_property
    def table(self) -> Callable[..., tuple[Array, Arena, bool]]:
        """A function (dtype, length, *items of sizes) of an address table without parameters, which remembers the last ones."""
        return lru_cache(maxsize=16)(partial(_without_parameters, self))


@dataclass(frozen=True)
class CFunctions:
    """The text of the C functions that call kernels, with arrays found through the address table. text: what it calls."""

    entries: tuple[TableEntry, ...]
    numbers: tuple[str, ...]
    scratch: int
    real: str
    text: PythonText = field(default_factory=PythonText)

    def stage(self, k: RightSide) -> str:
        """The text of stage(table, t, y, K, rows, coef, ns, s, z); z is the address for the state, or 0 to discard it."""
        call, real = self.text.call, self.real
        lines = self._unpack(k, k.arguments())
        arrays = call(real, "k_", f"({ROWS}, n_)"), call("ints", "rows_", "s_ + 1"), call("float64", "coef_", "ns_")
        lines.append(f"k_, rows_, coef_ = {', '.join(arrays)}")
        if k.plan.local:
            lines.append("keep_ = 1 if z_ else 0")
            lines.append(f"x_, y_ = {call(real, 'y_', 'n_')}, {call(real, 'z_ if z_ else state_', f'n_ if z_ else {BLOCK}')}")
        else:
            place = "state_" if k.plan.fused else "(state_ if ns_ else y_)"  # without stages and a place for it the state is what was there
            lines.append(f"x_, y_ = {call(real, 'y_', 'n_')}, {call(real, f'z_ if z_ else {place}', 'n_')}")
        if k.plan.basis is not None:
            lines.append("scale_ = scales_[rows_[s_]]")
        if not k.plan.fused:
            lines += [f"for lo_ in range(0, n_ if ns_ or z_ else 0, {BLOCK}):", f"    hi_ = min(lo_ + {BLOCK}, n_)"]
            block = call("block", "y_", "lo_", "hi_")
            lines.append(f"    {call('combine_block', 'x_', 'k_', 'rows_', 'coef_', 'ns_', 'lo_', 'hi_', block)}")
        row = call("row_block", "k_", "rows_[s_]", "0", "n_")
        lines.append(f"{k.name}({', '.join(row if a == 'out_' else a for a in k.arguments())})")
        return self._function("STAGE", "stage(table_, t, y_, k_, rows_, coef_, ns_, s_, z_)", lines)

    def combine(self, k: RightSide) -> str:
        """The text of combine(table, y, K, rows, coef, ns, lo, hi, out)."""
        call, real = self.text.call, self.real
        lines = self._unpack(k, [*k.constants, *k.sizes, "scales_", "weights_"] if k.plan.basis is not None else [])
        arrays = call(real, "k_", f"({ROWS}, n_)"), call("ints", "rows_", "ns_"), call("float64", "coef_", "ns_")
        lines.append(f"k_, rows_, coef_ = {', '.join(arrays)}")
        lines.append(f"x_, out_ = {call(real, 'y_', 'n_ if y_ else 0')}, {call(real, 'out_', 'hi_ - lo_')}")
        lines += k.scaling(self.text)
        weights = "coef_" if k.plan.basis is None else "weights_"
        lines.append(call("combine_block", "x_", "k_", "rows_", weights, "ns_", "lo_", "hi_", "out_"))
        lines += [call("add_scaled", f"c{q}_", call("block", a, "lo_", "hi_"), "out_") for q, a in enumerate(k.constants)]
        return self._function("COMBINE", "combine(table_, y_, k_, rows_, coef_, ns_, lo_, hi_, out_)", lines)

    def events(self, k: Kernel) -> str:
        """The text of events(table, t, y, g)."""
        total = self.text(k.results[-1].end)
        lines = self._unpack(k, k.arguments())
        first = ["t", self.text.call(self.real, "y_", "n_"), self.text.call(self.real, "g_", total)]
        return self._function("EVENTS", "events(table_, t, y_, g_)", [*lines, f"{k.name}({', '.join([*first, *k.arguments()[3:]])})"])

    def _function(self, signature: str, head: str, lines: list[str]) -> str:
        # explicit signatures: numba compiles when the module is loaded, and never for a type that nobody has
        self.text.called.add(signature)
        return "\n".join([f"@njit({signature}, **options)", f"def {head}:", *margin(lines)])

    def _unpack(self, k: Kernel, wanted: list[str]) -> list[str]:
        """The lines that give the wanted entries of the table their names."""
        lines = [f"at_ = {self.text.call('ints', 'table_', str(len(self.entries)))}"]
        for n, entry in enumerate(self.entries):
            lines += self._entry_lines(k, entry, n, wanted)
        return lines

    def _entry_lines(self, k: Kernel, entry: TableEntry, n: int, wanted: list[str]) -> list[str]:
        call, place = self.text.call, f"at_[{n}]"
        if entry.kind in ("length", "size", "blocks") or (entry.kind == "blas" and entry.name in wanted):
            return [f"{entry.name} = {place}"]
        if entry.kind == "numbers":
            used = [(j, number) for j, number in enumerate(self.numbers) if number in wanted]
            # not all of them: parameters that only events read come last, and leave this text as it is
            head = [f"numbers_ = {call('float64', place, str(1 + used[-1][0]))}"] if used else []
            return head + [f"{number} = numbers_[{j}]" for j, number in used]
        if entry.kind == "scratch":
            return self._scratch(k, entry.name, place, wanted)
        kernel, _, array = entry.name.rpartition(".")
        if entry.kind == "blas" or (kernel and kernel != k.name) or array not in wanted:
            return []
        return [f"{array} = {call('ints' if entry.integer else self.real, place, shape_text(tuple(map(whole, entry.shape)), self.text))}"]

    def _scratch(self, k: Kernel, array: str, place: str, wanted: list[str]) -> list[str]:
        if array == "state_":
            return [f"state_ = {place}"] if isinstance(k, RightSide) and "y_" in wanted else []
        if array not in wanted:
            return []
        shapes = dict.fromkeys(("weights_", "early_"), str(ROWS)) | dict.fromkeys(("late_", "amounts_"), str(LATE)) | {"base_": str(BLOCK)}
        shapes |= {WORK: f"({self.scratch}, {BLOCK})", "part_": f"({self.scratch}, blocks_)", "scales_": f"({ROWS}, {k.scales})"}
        kinds = {"late_": "ints", "base_": self.real}
        return [f"{array} = {self.text.call(kinds.get(array, 'float64'), place, shapes[array])}"]


def module_text(system: System, right: Program, *, dtype: str, strict: bool) -> ModuleText:
    """The numba module of a System's right-hand side: rhs, stage and combine."""
    kernel = RightSide(system, make_loop_plan(system, right, strict=strict), dtype, blas=not strict)
    return module_of(kernel, SCRATCH, lambda functions: [functions.stage(kernel), functions.combine(kernel)], dtype, strict)


def module_of(kernel: Kernel, scratch: Sequence[str], texts: Callable[[CFunctions], list[str]], dtype: str, strict: bool) -> ModuleText:
    """The module of a kernel and of C functions that call it: the imports that they need, compiler options, their texts."""
    system, blocks = kernel.system, kernel.nests.scratch_blocks
    entries, numbers = table_entries(system, [kernel], scratch), scalar_parameters(system)
    functions = CFunctions(entries, numbers, blocks, dtype)
    parts = [kernel.definitions(), *texts(functions)]
    used = functions.text.called | kernel.called
    lines = [f'"""{system.name}, {dtype}{", strict" if strict else ""}: generated, runtime {key_for(used)}."""', ""]
    lines += ["from math import sqrt", ""] if "sqrt" in used else []
    lines += ["from odesim.runtime.functions import njit", *_imports(IN_LOOPS, used, strict), *own_imports(used)]
    mode = "False" if strict else '{"contract"}'
    lines += ["", f"options = dict(fastmath={mode})"]
    lines += ["kernel = njit(**options)"]
    source = "\n\n\n".join(["\n".join(lines), *parts]) + "\n"
    loops = tuple(kernel.program.extents.values())
    return ModuleText(source, entries, numbers, blocks, kernel.scales, kernel.local, tuple(kernel.nests.products), loops)


def written_module(f: Formulas, strict: bool, name: str = "right") -> str:
    """The text of name(t, y0, ..., p0, ...) with these formulas, with what it imports and its options, to be joined with other text."""
    imports = [*own_imports(f.words), *_imports({"stages": ("maximum", "minimum", "powi")}, f.words)]
    mode = "False" if strict else '{"contract"}'
    options = f"options = dict(fastmath={mode})  # runtime {key_for(f.words)}"
    arguments = ["t", *(f"y{d}" for d in range(f.states)), *(f"p{q}" for q in range(f.count))]
    head = ["@njit(forceinline=True, **options)", f"def {name}({', '.join(arguments)}):"]
    return "\n".join([*imports, options, "", "", *head, *margin([*f.lines, f"return ({', '.join(f.outputs)},)"])])


def scalar_parameters(system: System) -> tuple[str, ...]:
    """The names of the parameters that are numbers, which lie in one array."""
    return tuple(p.name for p in system.params if not p.shape)


def table_entries(system: System, kernels: Sequence[Kernel], scratch: Sequence[str], *, blocks: bool = True) -> tuple[TableEntry, ...]:
    """The entries of the address table of these kernels. blocks: whether the number of blocks is one; on a GPU the kernel computes it."""
    # functions take one address and not an argument for each array: they are called from the integrator, which is compiled once for all
    used = {name for k in kernels for name in k.params}
    entries = [TableEntry("length", "n_"), *(TableEntry("size", name) for name in system.size_names)]
    entries += [TableEntry("blocks", "blocks_")] * blocks
    entries += [TableEntry("numbers", "numbers_")]
    entries += [TableEntry("array", p.name, p.shape, p.integer) for p in system.params if p.shape and p.name in used]
    entries += [TableEntry("temporary", f"{k.name}.{r}", shape) for k in kernels for r, shape in k.temporaries.items()]
    entries += [TableEntry("scratch", name) for name in scratch]
    return (*entries, *[TableEntry("blas", "gemm_")] * any(k.uses_blas for k in kernels))


@cache
def runtime_key(*modules: str) -> str:
    """A hash, 12 hex digits, of the runtime source that generated modules inline: a change of it gives new modules.

    modules: those of the runtime that are inlined beside the common ones.
    """
    more = dict.fromkeys(name for m in modules for name in NEEDS[m])
    sources = [*INLINED, *(f"{RUNTIME}.{name}" for name in more)]
    return hashlib.sha256("".join(map(source_of, sources)).encode()).hexdigest()[:12]


def key_for(used: Collection[str]) -> str:
    """The runtime_key of a module that uses these words."""
    return runtime_key(*(m for m in NEEDS if any(w in used for w in OWN[m])))


def runtime_functions() -> dict[str, Any]:
    """{name: function}: what scalar expressions of kernels call."""
    table = {**OWN, "stages": ("maximum", "minimum", "powi")}
    return {word: getattr(import_module(f"{RUNTIME}.{module}"), word) for module, words in table.items() for word in words}


def own_imports(used: Collection[str]) -> list[str]:
    """The lines that import those of our functions that are used."""
    return _imports(OWN, used)


def _imports(table: Mapping[str, Sequence[str]], used: Collection[str], strict: bool = False) -> list[str]:
    """The lines that import the functions of a table that are used. strict: of those in two modes the strict one."""
    words = {
        module: [f"{w}_strict as {w}" if strict and w in TWO_MODES else w for w in names if w in used] for module, names in table.items()
    }
    return [f"from {RUNTIME}.{module} import {', '.join(names)}" for module, names in words.items() if names]


@dataclass(frozen=True)
class AddressTable:
    """An address table and the memory that it points to.

    entries: int64, one for each entry of the ModuleText. references: the arrays behind the addresses, kept alive.
    arrays: {parameter: its array}. blas: whether BLAS computes products.
    """

    entries: Array
    address: int
    references: tuple[Array, ...]
    arrays: dict[str, Array]
    blas: bool


def make_table(
    text: ModuleText,
    sizes: Mapping[str, int],
    params: Mapping[str, Any],
    dtype: str,
    length: int,
    shared: Mapping[str, Array] | None = None,
) -> AddressTable:
    """The address table for these numbers. length: of the flat state. shared: {parameter: its array} of another table, read here too."""
    # all memory of a run lies in one arena on cache lines: where arrays lie in a page alone is worth up to 17 % (one large system)
    fixed, arena, large = text.table(dtype, length, *sizes.items())
    table = fixed.copy()
    references, arrays = [arena.memory(table)], dict[str, Array]()
    for n, entry in text.parameters:
        a = (shared or {}).get(entry.name)
        a = _parameter_array(entry, text, params, dtype) if a is None else a
        references.append(a)
        arrays[entry.name] = a
        table[n] = a.ctypes.data
    return AddressTable(table, table.ctypes.data, tuple(references), arrays, large)


def _without_parameters(text: ModuleText, dtype: str, length: int, *items: tuple[str, int]) -> tuple[Array, Arena, bool]:
    """What parameters do not change of an address table: its numbers, the places of its memory, and whether BLAS computes products."""
    sizes, width = dict(items), 8 if dtype == "float64" else 4
    blocks = -(-max(extents(text.loops, sizes), default=1) // BLOCK)
    scratch = _scratch(text, width, length, blocks)
    byte_sizes = {}
    for n, entry in enumerate(text.entries):
        if entry.kind == "scratch":
            byte_sizes[n] = scratch[entry.name]
        elif entry.kind == "temporary":
            byte_sizes[n] = prod(extents(entry.shape, sizes)) * width
    # below it our tiles are faster; and scipy.linalg, where BLAS is, need not be imported
    large = any(prod(extents(product, sizes)) > TURNED for product in text.products)
    numbers = {"length": length, "blocks": blocks, "blas": gemm_address(dtype) if large else 0}
    fixed = [sizes[entry.name] if entry.kind == "size" else numbers.get(entry.kind, 0) for entry in text.entries]
    return np.array(fixed, np.int64), Arena(byte_sizes), large


def _parameter_array(entry: TableEntry, text: ModuleText, params: Mapping[str, Any], dtype: str) -> Array:
    """The array of a parameter, or one array of all scalar parameters."""
    if entry.kind == "numbers":
        return np.array([params[name] for name in text.numbers], np.float64)
    return aligned(np.ascontiguousarray(params[entry.name], np.int64 if entry.integer else dtype), turn=len(entry.name))


def _scratch(text: ModuleText, width: int, length: int, blocks: int) -> dict[str, int]:
    """{scratch array: its size in bytes}."""
    return {
        "work_": 8 * text.scratch * BLOCK,
        "part_": 8 * text.scratch * blocks,
        "scales_": 8 * ROWS * text.scales,
        "weights_": 8 * ROWS,
        "early_": 8 * ROWS,
        "late_": 8 * LATE,
        "amounts_": 8 * LATE,
        "base_": width * BLOCK,
        "state_": width * (BLOCK if text.local else length),
    }
