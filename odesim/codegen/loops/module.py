"""Programs as numba modules: one kernel for each Program, and the C functions that an integrator calls."""

import re
from dataclasses import dataclass
from typing import Any

from odesim.ir.program import Program
from odesim.symbolic.system import System
from odesim.targets.cache import module_name
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.native import load_native
from odesim.targets.numba_module import key_for, own_imports
from odesim.targets.numba_text import CFunctions, Kernel, RightSide, TableEntry

RUNTIME = (
    "COMBINE", "EVENTS", "STAGE", "add_scaled", "block_dot", "block_max", "block_sum", "combine_block", "constant_weight",
    "maximum", "minimum", "powi", "scale_weights", "split_terms", "tree_max", "tree_sum",
)  # fmt: skip
ACCESS = ("block", "float32", "float64", "ints", "load", "part_of", "reload", "row_block", "store", "vector")
PRODUCTS = ("product", "blas_product")
TWO_MODES = ("combine_block", "product")


@dataclass(frozen=True)
class ModuleText:
    """A generated module: its source, and the entries of its address table in order.

    numbers: scalar parameters. scratch: blocks of scratch memory. scales: numbers stored beside a stage, 0 where stages are not
    scaled. local: the state is computed block by block in scratch memory unless the caller needs it. products: extents of the matrix
    products that BLAS may compute.
    """

    source: str
    entries: tuple[TableEntry, ...]
    numbers: tuple[str, ...]
    scratch: int
    scales: int
    local: bool
    products: tuple[tuple[Any, ...], ...] = ()


def module_text(system: System, right: Program, events: Program | None, *, dtype: str, strict: bool) -> ModuleText:
    """The numba module of a System: rhs, stage and combine; find_events and events where it has events."""
    kernel = RightSide(system, make_loop_plan(system, right, strict=strict), dtype, blas=not strict)
    kernels: list[Kernel] = [kernel]
    if events is not None:
        kernels.append(Kernel("find_events", system, events, dtype, blas=not strict))
    numbers = tuple(p.name for p in system.params if not p.shape)
    entries = [TableEntry("length", "n_"), *(TableEntry("size", name) for name in system.size_names), TableEntry("blocks", "blocks_")]
    entries.append(TableEntry("numbers", "numbers"))
    entries += [TableEntry("array", p.name, p.shape, p.integer) for p in system.params if p.shape]
    entries += [TableEntry("temporary", f"{k.name}.{r}", shape) for k in kernels for r, shape in k.temporaries.items()]
    entries += [
        TableEntry("scratch", name) for name in ("work_", "part_", "scales_", "weights_", "state_", "early_", "late_", "amounts_", "base_")
    ]
    entries += [TableEntry("blas", "gemm_")] * any(k.nests.uses_blas for k in kernels)
    functions = CFunctions(tuple(entries), numbers, max(k.nests.scratch_blocks for k in kernels), dtype)
    body = "\n\n\n".join(
        [*(k.definitions() for k in kernels), functions.stage(kernel), functions.combine(kernel), *map(functions.events, kernels[1:])]
    )
    scales = 1 + len(kernel.plan.basis.constants) if kernel.plan.basis else 0
    return ModuleText(
        f"{head_text(system, body, dtype, strict)}\n\n\n{body}\n",
        tuple(entries),
        numbers,
        functions.scratch,
        scales,
        kernel.plan.local,
        tuple(p for k in kernels for p in k.nests.products),
    )


def head_text(system: System, body: str, dtype: str, strict: bool) -> str:
    """The head of a module: the imports that its body needs, and compiler options."""
    used = set(re.findall(r"\w+", body))
    end = "_strict" if strict else ""
    helpers, products = ([f"{w}{end} as {w}" if end and w in TWO_MODES else w for w in words if w in used] for words in (RUNTIME, PRODUCTS))
    lines = [f'"""{system.name}, {dtype}{", strict" if strict else ""}: generated, runtime {key_for(used)}."""', ""]
    lines += ["from math import sqrt", ""] if "sqrt" in used else []
    lines += ["import numba as nb", ""]
    lines += [f"from odesim.runtime.stages import {', '.join(helpers)}"] if helpers else []
    lines += [f"from odesim.runtime.matrices import {', '.join(products)}"] if products else []
    access = [w for w in ACCESS if w in used]
    lines += [f"from odesim.runtime.views import {', '.join(access)}"] if access else []
    lines += own_imports(used)
    mode = "False" if strict else '{"contract"}'
    lines += ["", f'options = dict(error_model="numpy", fastmath={mode}, no_cpython_wrapper=True, no_cfunc_wrapper=True)']
    lines += ["kernel = nb.njit(**options)"]
    return "\n".join(lines)


def load(text: ModuleText, stem: str) -> dict[str, int]:
    """{name: address} of the compiled C functions of a module: stage, combine, and events where it has events."""
    names = [name for name in ("stage", "combine", "events") if f"\ndef {name}(" in text.source]
    return load_native(text.source, stem, names)


def key(text: ModuleText, stem: str) -> str:
    """The name of a module and of its machine code in the cache."""
    return module_name(text.source, stem)
