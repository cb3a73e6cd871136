"""The text of kernels for numba, and of the C functions that call them.

Passes of a long kernel are functions of their own: equal passes of many layers are one function, compiled once. A compiler's optimiser
takes more than twice the time for a function of twice the length. These functions are called, not inlined: SEPARATE in their names says so.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import sympy as sp

from odesim.base.parsing import parse
from odesim.ir.program import Program
from odesim.symbolic.layered import names_read
from odesim.symbolic.parts import all_names
from odesim.symbolic.system import System
from odesim.targets.blocks import BLOCK, HERE, LATE, FusedLoops
from odesim.targets.loop_plan import LoopPlan, copy_integer_factors
from odesim.targets.matrix_products import along_lanes, join_products, lay_out
from odesim.targets.native import SEPARATE
from odesim.targets.nest import UNIT_NAMES, UNITS, Nests, Start

ROWS = 64
"""Rows of a stage array: more than any method has stages."""
MANY = 40
"""A kernel of so many passes is split: a call costs some ten nanoseconds."""


@dataclass(frozen=True)
class TableEntry:
    """One entry of an address table: the length n, a size, or the address of the scalar parameters, an array, scratch memory or BLAS."""

    kind: str
    name: str
    shape: tuple[Any, ...] = ()
    integer: bool = False


class Kernel:
    """One Program as the text of a function `name`."""

    first: tuple[str, ...] = ("t", "y_", "out_")

    def __init__(self, name: str, system: System, program: Program, dtype: str, **form: Any):
        whole = {p.name for p in system.params if p.integer}
        program = join_products(lay_out(along_lanes(copy_integer_factors(program, whole, all_names(system)))))
        self.name, self.system, self.program = name, system, program
        self.nests = Nests(program, system.size_names, double=dtype == "float64", whole=whole, **form)
        self.body = "\n".join(self.nests.emit())
        self.temporaries = {k: shape for k, shape in program.temporaries.items() if shape}
        reads = program.inputs() | program.sizes | self._extent_names()
        self.sizes = [s for s in system.size_names if s in reads]
        self.params = [p.name for p in system.params if p.name in reads]

    def arguments(self) -> list[str]:
        """The names of the function's arguments, in order."""
        return [*self.first, *self.sizes, *self.params, *self.temporaries, "work_", "part_", *["gemm_"] * self.nests.uses_blas]

    def definition(self) -> str:
        """The text of the function."""
        return "\n".join(["@kernel", f"def {self.name}({', '.join(self.arguments())}):", *self._views(), self.body, *self._stores()])

    def definitions(self) -> str:
        """The text of the function, where it is long with passes as functions of their own: faster to compile."""
        # the first pass stays here where it computes the state: its loop reads names that are set before it
        passes, first = self.nests.passes, 1 if self.nests.state else 0
        if len(passes) < MANY:
            return self.definition()
        inside = [line for p in passes[:first] for line in p]
        known = {*self.arguments(), *_numbers(_statements([*self._views(), *inside]))}
        functions, calls = separate_passes(self.name, passes[first:], known, self._stores())
        whole = self.definition().replace(self.body, "\n".join([*inside, *calls]))
        return "\n\n\n".join([*functions, whole])

    def outputs(self) -> list[tuple[str, tuple[Any, ...]]]:
        """The (name, extents) of each output."""
        return [(name, tuple(self.program.extents[i] for i in ix)) for name, ix in self.program.outputs.items()]

    def _extent_names(self) -> set[str]:
        shapes = [*self.system.shapes.values(), *(shape for _, shape in self.outputs())]
        return {x.name for shape in shapes for e in shape for x in sp.sympify(e).free_symbols}

    def _views(self) -> list[str]:
        """The lines that name the parts of the flat state and the flat output."""
        return [
            *_split("y_", list(self.system.shapes.items())),
            *_split("out_", self.outputs(), numbers=False),
        ]

    def _stores(self) -> list[str]:
        """The lines that store scalar outputs in the flat output."""
        return [f"    {place} = {name}" for name, place in _places("out_", self.outputs())]


class RightSide(Kernel):
    """The kernel of a right-hand side; depending on its LoopPlan it also computes the state, and returns a scaled stage."""

    def __init__(self, system: System, plan: LoopPlan, dtype: str, *, blas: bool = False):
        self.plan = plan
        state = system.states[0] if plan.fused else ""
        self.constants = [str(a.base.label) for a in plan.basis.constants] if plan.basis is not None else []
        self.fused = FusedLoops(self.constants) if plan.local else None
        lines = [f"{HERE} = block(y_, lo_, hi_)", f"combine_block(x_, k_, rows_, coef_, ns_, lo_, hi_, {HERE})"]
        if plan.basis is not None:
            lines = [line.replace("coef_", "weights_") for line in lines]
            lines += [f"add_scaled(c{q}_, block({a}, lo_, hi_), {HERE})" for q, a in enumerate(self.constants)]
        prologue = self.fused.prologue() if self.fused else lines
        super().__init__("rhs", system, plan.program, dtype, blas=blas, start=Start(state, prologue, self.fused))
        if plan.fused:
            self.first = ("t", "y_", "x_", "k_", "rows_", "coef_", "ns_", "out_")
        if plan.local:
            self.first = (*self.first, "keep_", "early_", "late_", "amounts_", "base_")
        if plan.basis is not None:
            self.first = (*self.first, "scales_", "weights_", "scale_")
            del self.temporaries[plan.basis.temporary]
            reads = {*self.params, *self.sizes, *self.constants}.union(*map(names_read, (plan.basis.scale, *plan.basis.weights)))
            self.params = [p.name for p in system.params if p.name in reads]
            self.sizes = [s for s in system.size_names if s in reads]

    def definition(self) -> str:
        elements = self.fused.definition if self.fused else ""
        return f"{elements}\n\n\n{super().definition()}" if elements else super().definition()

    def scaling(self) -> list[str]:
        """The lines that compute the weights of scaled stages."""
        if self.plan.basis is None:
            return []
        lines = ["    scale_weights(coef_, rows_, ns_, scales_, weights_)"]
        return lines + [f"    c{q}_ = constant_weight(coef_, rows_, ns_, scales_, {q + 1})" for q in range(len(self.constants))]

    def _views(self) -> list[str]:
        lines = super()._views()
        if self.plan.basis is not None:
            ((_, (extent,)),) = self.system.shapes.items()
            whole = [] if self.plan.local else lines[:1]
            lines = [*whole, f"    {self.plan.basis.temporary} = block(out_, 0, {extent})", *self.scaling()]
        elif self.plan.local:
            lines = lines[1:]
        return [*lines, *self.fused.setup("coef_" if self.plan.basis is None else "weights_")] if self.fused else lines

    def _stores(self) -> list[str]:
        if self.plan.basis is None:
            return super()._stores()
        numbers = [self.plan.basis.scale, *self.plan.basis.weights]
        return [f"    scale_[{q}] = {self.nests.printer.text(e)}" for q, e in enumerate(numbers)]


def _split(of: str, parts: list[tuple[str, tuple[Any, ...]]], *, numbers: bool = True) -> list[str]:
    """The lines that name the parts of a flat array. numbers: scalar parts too."""
    lines, start = [], sp.S.Zero
    for name, shape in parts:
        end = sp.expand(start + sp.prod(shape))
        if len(shape) > 1:
            lines.append(f"    {name} = part_of({of}, {start}, {_shape_text(shape)})")
        elif shape or numbers:
            lines.append(f"    {name} = block({of}, {start}, {end})" if shape else f"    {name} = {of}[{start}]")
        start = end
    return lines


def _shape_text(shape: tuple[Any, ...]) -> str:
    """A shape as text: M, or (S, K + 1)."""
    return f"({', '.join(map(str, shape))})" if len(shape) > 1 else str(shape[0])


def _places(of: str, parts: list[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, str]]:
    """The (name, element of the flat array) of each scalar part."""
    out, start = [], sp.S.Zero
    for name, shape in parts:
        if not shape:
            out.append((name, f"{of}[{start}]"))
        start = sp.expand(start + sp.prod(shape))
    return out


@dataclass(frozen=True)
class CFunctions:
    """The text of the C functions that call kernels, with arrays found through the address table."""

    entries: tuple[TableEntry, ...]
    numbers: tuple[str, ...]
    scratch: int
    real: str

    def stage(self, k: RightSide) -> str:
        """The text of stage(table, t, y, K, rows, coef, ns, s, z); z is the address for the state, or 0 to discard it."""
        real = self.real
        # explicit signatures: numba compiles when the module is loaded, and never for a type that nobody has
        lines = ["@nb.njit(STAGE, **options)", "def stage(table_, t, y_, k_, rows_, coef_, ns_, s_, z_):", *self._unpack(k, k.arguments())]
        lines.append(f"    k_, rows_, coef_ = {real}(k_, ({ROWS}, n_)), ints(rows_, s_ + 1), float64(coef_, ns_)")
        if k.plan.local:
            lines.append("    keep_ = 1 if z_ else 0")
            lines.append(f"    x_, y_ = {real}(y_, n_), {real}(z_ if z_ else state_, n_ if z_ else {BLOCK})")
        else:
            place = "state_" if k.plan.fused else "(state_ if ns_ else y_)"  # without stages and a place for it the state is what was place
            lines.append(f"    x_, y_ = {real}(y_, n_), {real}(z_ if z_ else {place}, n_)")
        if k.plan.basis is not None:
            lines.append("    scale_ = scales_[rows_[s_]]")
        if not k.plan.fused:
            lines += [f"    for lo_ in range(0, n_ if ns_ or z_ else 0, {BLOCK}):", f"        hi_ = min(lo_ + {BLOCK}, n_)"]
            lines.append("        combine_block(x_, k_, rows_, coef_, ns_, lo_, hi_, block(y_, lo_, hi_))")
        call = ", ".join("row_block(k_, rows_[s_], 0, n_)" if a == "out_" else a for a in k.arguments())
        return "\n".join([*lines, f"    {k.name}({call})"])

    def combine(self, k: RightSide) -> str:
        """The text of combine(table, y, K, rows, coef, ns, lo, hi, out)."""
        real, wanted = self.real, [*k.constants, *k.sizes, "scales_", "weights_"] if k.plan.basis is not None else []
        lines = [
            "@nb.njit(COMBINE, **options)",
            "def combine(table_, y_, k_, rows_, coef_, ns_, lo_, hi_, out_):",
            *self._unpack(k, wanted),
        ]
        lines.append(f"    k_, rows_, coef_ = {real}(k_, ({ROWS}, n_)), ints(rows_, ns_), float64(coef_, ns_)")
        lines.append(f"    x_, out_ = {real}(y_, n_ if y_ else 0), {real}(out_, hi_ - lo_)")
        lines += k.scaling()
        weights = "coef_" if k.plan.basis is None else "weights_"
        lines.append(f"    combine_block(x_, k_, rows_, {weights}, ns_, lo_, hi_, out_)")
        lines += [f"    add_scaled(c{q}_, block({name}, lo_, hi_), out_)" for q, name in enumerate(k.constants)]
        return "\n".join(lines)

    def events(self, k: Kernel) -> str:
        """The text of events(table, t, y, g)."""
        total = sp.expand(sum((sp.prod(shape) for _, shape in k.outputs()), sp.S.Zero))
        lines = ["@nb.njit(EVENTS, **options)", "def events(table_, t, y_, g_):", *self._unpack(k, k.arguments())]
        first = ["t", f"{self.real}(y_, n_)", f"{self.real}(g_, {total})"]
        return "\n".join([*lines, f"    {k.name}({', '.join([*first, *k.arguments()[3:]])})"])

    def _unpack(self, k: Kernel, wanted: list[str]) -> list[str]:
        """The lines that give the wanted entries of the table their names."""
        lines = [f"    at_ = ints(table_, {len(self.entries)})"]
        for n, entry in enumerate(self.entries):
            lines += self._entry_lines(k, entry, n, wanted)
        return lines

    def _entry_lines(self, k: Kernel, entry: TableEntry, n: int, wanted: list[str]) -> list[str]:
        if entry.kind in ("length", "size", "blocks") or (entry.kind == "blas" and entry.name in wanted):
            return [f"    {entry.name} = at_[{n}]"]
        if entry.kind == "numbers":
            used = [(j, name) for j, name in enumerate(self.numbers) if name in wanted]
            head = [f"    numbers_ = float64(at_[{n}], {len(self.numbers)})"] * bool(used)
            return head + [f"    {name} = numbers_[{j}]" for j, name in used]
        if entry.kind == "scratch":
            return self._scratch(k, entry.name, n, wanted)
        kernel, _, name = entry.name.rpartition(".")
        if entry.kind == "blas" or (kernel and kernel != k.name) or name not in wanted:
            return []
        return [f"    {name} = {'ints' if entry.integer else self.real}(at_[{n}], {_shape_text(entry.shape)})"]

    def _scratch(self, k: Kernel, name: str, place: int, wanted: list[str]) -> list[str]:
        if name == "state_":
            return [f"    state_ = at_[{place}]"] if isinstance(k, RightSide) and "y_" in wanted else []
        if name not in wanted:
            return []
        if name in ("weights_", "early_"):
            return [f"    {name} = float64(at_[{place}], {ROWS})"]
        if name in ("late_", "amounts_"):
            return [f"    {name} = {'ints' if name == 'late_' else 'float64'}(at_[{place}], {LATE})"]
        if name == "base_":
            return [f"    base_ = {self.real}(at_[{place}], {BLOCK})"]
        shapes = {"work_": (self.scratch, BLOCK), "part_": (self.scratch, "blocks_")}
        if isinstance(k, RightSide):
            shapes["scales_"] = (ROWS, 1 + len(k.constants))
        rows, width = shapes[name]
        return [f"    {name} = float64(at_[{place}], ({rows}, {width}))"]


def separate_passes(kernel: str, passes: Sequence[Sequence[str]], known: Iterable[str], end: Sequence[str]) -> tuple[list[str], list[str]]:
    """(definitions of functions, lines that call them) for the lines of each pass of a kernel.

    known: the names that the lines before define. end: the lines after the passes.
    """
    trees = [[node for node in _statements(lines) if _names([node], stored=True) != UNIT_NAMES] for lines in passes]
    read_later = [set(_names(_statements(end)))]
    for tree in reversed(trees[1:]):
        read_later.insert(0, read_later[0].union(_names(tree)))
    defined, functions, calls = set(known), dict[str, str](), list[str]()  # functions {text: name}
    for tree, later in zip(trees, read_later, strict=True):
        numbers = _numbers(tree)
        results = [name for name in numbers if name in later]
        arguments = [name for name in _names(tree) if name in defined and name not in numbers]
        text = _function(tree, arguments, results)
        name = functions.setdefault(text, f"{SEPARATE}_{kernel}_{len(functions)}")
        calls.append(f"    {', '.join(results)}{' = ' if results else ''}{name}({', '.join(arguments)})")
        defined |= set(results)
    return [f"@kernel\ndef {name}{text}" for text, name in functions.items()], calls


def _function(tree: Sequence[ast.stmt], arguments: Sequence[str], results: Sequence[str]) -> str:
    """The text of a function after its name, with names p0_, p1_, ... in the order in which they come."""
    local = {*arguments, *_names(tree, stored=True)}
    short = {name: f"p{n}_" for n, name in enumerate(name for name in _names(tree) if name in local)}
    lines = [UNITS] * (not set(UNIT_NAMES).isdisjoint(_names(tree)))
    for node in tree:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                part.id = short.get(part.id, part.id)
        lines += ast.unparse(node).split("\n")
    lines += [f"return {', '.join(short[name] for name in results)}"] * bool(results)
    return "\n".join([f"({', '.join(short[name] for name in arguments)}):", *(f"    {line}" for line in lines)])


def _statements(lines: Iterable[str]) -> list[ast.stmt]:
    """The statements of these lines of a kernel."""
    return parse(dedent("\n".join(lines))).body


def _names(tree: Iterable[ast.stmt], *, stored: bool = False) -> list[str]:
    """The names in these statements, each once. stored: only those that are given values."""
    parts = (part for node in tree for part in ast.walk(node) if isinstance(part, ast.Name))
    return list(dict.fromkeys(part.id for part in parts if not stored or isinstance(part.ctx, ast.Store)))


def _numbers(tree: Iterable[ast.stmt]) -> list[str]:
    """The names that these statements give values outside of loops, each once."""
    return _names((node for node in tree if isinstance(node, ast.Assign)), stored=True)
