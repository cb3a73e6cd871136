"""The text of kernels for numba: nests as lines of Python.

Passes of a long kernel are functions of their own: equal passes of many layers are one function, compiled once. A compiler's optimiser
takes more than twice the time for a function of twice the length. These functions are called, not inlined: SEPARATE in their names says so.

A fused loop also computes the state from the stages, in the same pass, so that memory and arithmetic overlap. The state is computed AHEAD
elements before it is used. For one element, loads, sum and exponential form such a long chain that a processor has few elements in
flight. With the distance, loads of a later element run during the arithmetic of this one.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from odesim.base.parsing import margin
from odesim.ir.program import Program
from odesim.runtime.constants import SEPARATE
from odesim.symbolic.definition import all_names
from odesim.symbolic.layered import names_read
from odesim.symbolic.system import System
from odesim.targets import nest
from odesim.targets.expressions import PythonText, Tree, element, whole
from odesim.targets.expressions import name as variable
from odesim.targets.loop_plan import LoopPlan, copy_integer_factors
from odesim.targets.make_nests import Nests
from odesim.targets.matrix_products import along_lanes, join_products, lay_out

ROWS = 64
"""Rows of a stage array: more than any method has stages."""
MANY = 40
"""A kernel of so many passes is split: a call costs some ten nanoseconds."""
LATE = 6
"""The most stages that the loop itself adds to the state; earlier stages are added before the loop."""
AHEAD = 64
"""A number of elements, at least one iteration of the vectorised loop, so that no element is read before it is written."""


@dataclass
class FormedState:
    """How the first pass computes the state block by block: from the stages, in the loop that uses it where it is fused.

    constants: parameter arrays of which every stage contains a multiple, where stages are scaled; their factors are c0_, c1_, ...
    definition: the functions that compute and use an element of the state.
    """

    scaled: bool
    fused: bool
    constants: Sequence[str]
    definition: str = ""

    @property
    def weights(self) -> str:
        return "weights_" if self.scaled else "coef_"

    def setup(self, text: PythonText) -> list[str]:
        """The lines before the loop over blocks, which split the stages into early and late ones."""
        if not self.fused:
            return []
        late = ", ".join(f"a{q}_" for q in range(LATE))
        return [
            f"terms_, more_ = {text.call('split_terms', self.weights, 'ns_', 'early_', 'late_', 'amounts_')}",
            # late stages are numbers a0_, a1_, ... and not an array: LLVM keeps them in registers over the whole block
            f"{late} = {', '.join(f'amounts_[{q}]' for q in range(LATE))}",
        ]

    def prologue(self, text: PythonText) -> list[str]:
        """The lines at the start of a block: the memory of the state, and the state, or the value that it starts from."""
        combine = ("combine_block", "x_", "k_", "rows_", "early_" if self.fused else self.weights, "ns_", "lo_", "hi_")
        if not self.fused:
            parts = [(f"c{q}_", text.call("block", a, "lo_", "hi_")) for q, a in enumerate(self.constants)]
            lines = [f"{nest.HERE} = {text.call('block', 'y_', 'lo_', 'hi_')}", text.call(*combine, nest.HERE)]
            return lines + [text.call("add_scaled", c, part, nest.HERE) for c, part in parts]
        return [
            "at_ = lo_*keep_",
            f"{nest.HERE} = {text.call('block', 'y_', 'at_', 'at_ + hi_ - lo_')}",
            f"start_ = {text.call('block', 'x_', 'lo_', 'hi_')}",
            "if more_:",
            f"    {text.call(*combine, 'base_')}",
            f"    start_ = {text.call('block', 'base_', '0', 'hi_ - lo_')}",
            *(f"k{q}_ = {text.call('row_block', 'k_', f'rows_[late_[{q}]]', 'lo_', 'hi_')}" for q in range(LATE)),
        ]

    def loops(self, text: "NestText", loop: nest.Elements, views: Sequence[str]) -> list[str]:
        """The lines of the fused loops over one block, one for each even number of late stages. It sets `definition`."""
        i, number, weights = loop.index, loop.number, [f"c{q}_" for q in range(len(loop.factors))]
        lines, inside = text.elements(loop, views)
        written = sum(isinstance(s.target, ast.Subscript) for s in loop.body)
        place = (str(number), str(written), nest.HERE, i)
        multiples = (f"{c}*{text.call('load', str(number), a, i)}" for c, a in zip(weights, loop.factors, strict=True))
        form = text.call("store", *place, " + ".join(["value_", *multiples]))
        lines = [f"{loop.value} = {text.call('reload', *place)}", *lines]
        arguments = ", ".join([nest.HERE, *loop.factors, *weights])
        local = {i, loop.value, *views, *(s.target.id for s in loop.body if isinstance(s.target, ast.Name))}
        scalars = [nest.LOW] * (nest.LOW in inside)
        used = ", ".join([nest.HERE, *(v for v in views if v in inside), *sorted(inside - local - {nest.LOW}), *scalars])
        self.definition = "\n".join(
            [
                *("@kernel", f"def form({i}, value_, {arguments}):", f"    {form}", "", ""),
                *("@kernel", f"def element({i}, {used}):", *margin(lines)),
            ]
        )
        out = [f"ahead_ = min({AHEAD}, hi_ - lo_)"]
        # one loop for each even number of stages: a loop over stages inside the loop over elements would not be vectorised
        for terms in range(0, LATE + 1, 2):
            first, later = (self._form(text, number, terms, at, arguments) for at in (i, f"{i} + {AHEAD}"))
            out += [
                f"{'if' if terms == 0 else 'elif'} terms_ == {terms}:",
                *(f"    for {i} in range(ahead_):", f"        {first}"),
                *(f"    for {i} in range(hi_ - lo_ - ahead_):", f"        {later}", f"        element({i}, {used})"),
            ]
        return [*out, f"for {i} in range(hi_ - lo_ - ahead_, hi_ - lo_):", f"    element({i}, {used})"]

    @staticmethod
    def _form(text: PythonText, number: int, terms: int, at: str, arguments: str) -> str:
        """The call that computes the element `at` of the state from this number of stages."""
        stages = (f" + a{q}_*{text.call('load', str(number), f'k{q}_', at)}" for q in range(terms))
        return f"form({at}, {text.call('load', str(number), 'start_', at)}{''.join(stages)}, {arguments})"


class NestText(PythonText):
    """Nests as lines of Python for numba. named: the variables in what was written, as they come; short: other names for them."""

    def __init__(self, *, blas: bool = False, state: FormedState | None = None, short: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.blas, self.state, self.short = blas, state, short or {}
        self.named: dict[str, None] = {}
        self._loop, self._views = "", frozenset[str]()

    def name(self, text: str) -> str:
        self.named[text] = None
        return self.short.get(text, text)

    def read(self, array: Tree, index: Sequence[Tree]) -> str:
        if isinstance(array, ast.Name) and array.id in self._views:  # with the promise that it is not what the loop writes
            return self.call("load", self._loop, self(array), self(index[0]))
        return super().read(array, index)

    def lines(self, nodes: Iterable[nest.Node]) -> list[str]:
        """The lines of nodes."""
        return [line for node in nodes for line in self._node(node)]

    def _node(self, node: nest.Node) -> list[str]:
        match node:
            case nest.Set(target, value, add):
                return [f"{self(target)} {'+=' if add else '='} {self(value)}"]
            case nest.Fill(array, value):
                return [f"{self(array)}[...] = {self(value)}"]
            case nest.Loop(index, extent, body):
                return [f"for {self.name(index)} in range({self(extent)}):", *margin(self.lines(body))]
            case nest.Blocks():
                return self._blocks(node)
            case nest.Total(target, op, slot, extent):
                part = f"{self.name('part_')}[{slot}]"
                return [f"{self(target)} = {self.call(f'tree_{op}', part, f'({self(extent)} + {nest.BLOCK - 1}) // {nest.BLOCK}')}"]
            case nest.Multiply(arrays, steps, shape, add):
                start = ("blas_product", self.name("gemm_")) if self.blas else ("product",)
                vectors = [self._vector(*a) for a in arrays]
                lengths = (f"({', '.join(map(self, part))})" for part in (steps, shape))
                return [self.call(*start, *vectors, *lengths, self(add))]
            case nest.Inverse(matrices, result, copy, count, n):
                return [self.call("invert", *(self._vector(a, whole(0)) for a in (matrices, result, copy)), self(count), self(n))]
            case nest.PartialSums(array, downwards, before, n, after):
                word = "add_down" if downwards else "add_up"
                return [self.call(word, self._vector(array, whole(0)), *map(self, (before, n, after)))]
        raise TypeError(node)

    def _vector(self, array: str, start: Tree) -> str:
        return self.call("vector", self.name(array), self(start))

    def _blocks(self, node: nest.Blocks) -> list[str]:
        low, high, extent = self.name(nest.LOW), self.name("hi_"), self(node.extent)
        lines = [f"{high} = min({low} + {nest.BLOCK}, {extent})"]
        lines += self.state.prologue(self) if node.forms and self.state is not None else []
        for view in node.views:
            array = self.name(view.part.array)
            part = self._part(view.part) if view.length is None else self.call("part_of", array, "0", f"({self(view.length)},)")
            lines.append(f"{self.name(view.name)} = {part}")
        if node.elements is not None:
            views = [view.name for view in node.views]
            if node.elements.value:
                assert self.state is not None
                lines += self.state.loops(self, node.elements, views)
            else:
                head = f"for {self.name(node.elements.index)} in range({high} - {low}):"
                lines += [head, *margin(self.elements(node.elements, views)[0])]
        for fold in node.folds:
            total = self.call(f"block_{fold.op}", *map(self._part, fold.of), f"{high} - {low}")
            lines.append(f"{self.name('part_')}[{fold.slot}, {low} // {nest.BLOCK}] = {total}")
        return [f"for {low} in range(0, {extent}, {nest.BLOCK}):", *margin(lines)]

    def _part(self, part: nest.Part) -> str:
        """The text of a block of an array, or of the row that its first indices select."""
        array, row = self.name(part.array), [self(i) for i in part.row]
        if part.array == nest.HERE:
            return array
        if part.array == nest.WORK:
            return f"{array}[{row[0]}]"
        ends = self.name(nest.LOW), self.name("hi_")
        if not row:
            return self.call("block", array, *ends)
        return self.call("row_block", f"{array}[{', '.join(row[:-1])}]" if row[1:] else array, row[-1], *ends)

    def elements(self, loop: nest.Elements, views: Iterable[str]) -> tuple[list[str], set[str]]:
        """The lines for one element of a block, and the variables in them."""
        before, self.named = self.named, {}
        self._loop, self._views = str(loop.number), frozenset(views)
        lines, written = list[str](), 0
        for s in loop.body:
            match s.target:
                case ast.Subscript(value=ast.Name() as view, slice=index):
                    lines.append(self.call("store", self._loop, str(written), self(view), self(index), self(s.value)))
                    written += 1
                case _:
                    lines += self._node(s)
        self._views, inside = frozenset(), set(self.named)
        self.named = {**before, **self.named}
        return lines, inside


@dataclass(frozen=True)
class Slice:
    """A part of the flat state or output: an array of this shape, or with () one number."""

    name: str
    of: str
    start: Tree
    end: Tree
    shape: tuple[Tree, ...]


class Kernel:
    """One Program as a function `name`: its nests, its arguments, and the parts of the flat state and output.

    called: the functions that its text calls, once it is written.
    """

    first: tuple[str, ...] = ("t", "y_", "out_")
    state: FormedState | None = None
    scales, local = 0, True  # as of a ModuleText

    def __init__(self, name: str, system: System, program: Program, dtype: str, *, blas: bool = False, **form: Any):
        integers = {p.name for p in system.params if p.integer}
        program = join_products(lay_out(along_lanes(copy_integer_factors(program, integers, all_names(system)))))
        self.name, self.system, self.program = name, system, program
        self.nests = Nests(program, system.size_names, double=dtype == "float64", integers=integers, blas=blas, **form)
        self.called = set[str]()
        self.temporaries = {k: shape for k, shape in program.temporaries.items() if shape}
        reads = program.inputs() | program.sizes | self._extent_names()
        self.sizes = [s for s in system.size_names if s in reads]
        self.params = [p.name for p in system.params if p.name in reads]
        self.states, self.results = _slices("y_", list(system.shapes.items())), _slices("out_", self.outputs())

    @property
    def uses_blas(self) -> bool:
        return self.nests.blas and any(map(multiplies, self.nests.passes))

    def arguments(self) -> list[str]:
        """The names of the function's arguments, in order."""
        return [*self.first, *self.sizes, *self.params, *self.temporaries, nest.WORK, "part_", *["gemm_"] * self.uses_blas]

    def outputs(self) -> list[tuple[str, tuple[Any, ...]]]:
        """The (name, extents) of each output."""
        return [(output, tuple(self.program.extents[i] for i in ix)) for output, ix in self.program.outputs.items()]

    def parts(self) -> list[Slice]:
        """The parts of the flat state and the flat output that the kernel names."""
        return [*self.states, *(s for s in self.results if s.shape)]

    def stores(self) -> list[nest.Set]:
        """The statements that store scalar outputs in the flat output."""
        return [nest.Set(element("out_", s.start), variable(s.name)) for s in self.results if not s.shape]

    def definitions(self) -> str:
        """The text of the function; where it is long with passes as functions of their own, which compiles faster."""
        passes, first, functions, calls = self.nests.passes, len(self.nests.passes), list[str](), list[str]()
        if first >= MANY:  # the first pass stays here where it computes the state: its loop reads names that are set before it
            first = 1 if self.nests.state else 0
            known = {*self.arguments(), *(s.name for s in self.parts()), *(x for nodes in passes[:first] for x in numbers_of(nodes))}
            functions, calls = self._separate(passes[first:], known)
        text, lines = self.new_text(), list[str]()
        for nodes in passes[:first]:
            lines += text.lines(nodes)
        lines = [*(slice_line(s, text) for s in self.parts()), *self._setup(text), *lines, *calls, *text.lines(self.stores())]
        self.called |= text.called
        head = ["@kernel", f"def {self.name}({', '.join(self.arguments())}):"]
        elements = [self.state.definition] if self.state is not None and self.state.fused else []
        return "\n\n\n".join([*functions, *elements, "\n".join([*head, *margin(lines)])])

    def new_text(self, short: Mapping[str, str] | None = None) -> NestText:
        """A printer of its nests."""
        return NestText(blas=self.nests.blas, state=self.state, short=short)

    def _setup(self, text: PythonText) -> list[str]:
        """The lines before the passes."""
        return []

    def _separate(self, passes: Sequence[Sequence[nest.Node]], known: set[str]) -> tuple[list[str], list[str]]:
        """(definitions of functions, lines that call them) for these passes; known: the names that are set before."""
        texts = [self.new_text() for _ in passes]
        for text, nodes in zip(texts, passes, strict=True):
            text.lines(nodes)
        later, functions, calls = {s.name for s in self.results if not s.shape}, dict[str, str](), list[str]()  # functions {text: name}
        read_later = [later := later | text.named.keys() for text in reversed(texts)][::-1]
        for text, nodes, after in zip(texts, passes, [*read_later[1:], {s.name for s in self.results if not s.shape}], strict=True):
            numbers = numbers_of(nodes)
            results = [x for x in numbers if x in after]
            arguments = [x for x in text.named if x in known and x not in numbers]
            function = self._function(nodes, list(text.named), arguments, results)
            called = functions.setdefault(function, f"{SEPARATE}_{self.name}_{len(functions)}")
            calls.append(f"{', '.join(results)}{' = ' if results else ''}{called}({', '.join(arguments)})")
            known |= set(results)
        return [f"@kernel\ndef {called}{function}" for function, called in functions.items()], calls

    def _function(self, nodes: Sequence[nest.Node], names: Sequence[str], arguments: Sequence[str], results: Sequence[str]) -> str:
        """The text of a function after its name, with names p0_, p1_, ... in the order in which they come."""
        short = {x: f"p{n}_" for n, x in enumerate(names)}
        text = self.new_text(short)
        lines = text.lines(nodes)
        lines += [f"return {', '.join(short[x] for x in results)}"] * bool(results)
        self.called |= text.called
        return "\n".join([f"({', '.join(short[x] for x in arguments)}):", *margin(lines)])

    def _extent_names(self) -> set[str]:
        shapes = [*self.system.shapes.values(), *(shape for _, shape in self.outputs())]
        return {x.name for shape in shapes for e in shape for x in sp.sympify(e).free_symbols}


class RightSide(Kernel):
    """The kernel of a right-hand side; depending on its LoopPlan it also computes the state, and returns a scaled stage."""

    def __init__(self, system: System, plan: LoopPlan, dtype: str, *, blas: bool = False):
        self.plan, self.local = plan, plan.local
        self.constants = [str(a.base.label) for a in plan.basis.constants] if plan.basis is not None else []
        self.state = FormedState(plan.basis is not None, plan.local, self.constants) if plan.fused else None
        form = {"state": system.states[0] if plan.fused else "", "factors": self.constants if plan.local else None}
        super().__init__("rhs", system, plan.program, dtype, blas=blas, **form)
        if plan.fused:
            self.first = ("t", "y_", "x_", "k_", "rows_", "coef_", "ns_", "out_")
        if plan.local:
            self.first = (*self.first, "keep_", "early_", "late_", "amounts_", "base_")
        if plan.basis is not None:
            self.scales = 1 + len(self.constants)
            self.first = (*self.first, "scales_", "weights_", "scale_")
            del self.temporaries[plan.basis.temporary]
            reads = {*self.params, *self.sizes, *self.constants}.union(*map(names_read, (plan.basis.scale, *plan.basis.weights)))
            self.params = [p.name for p in system.params if p.name in reads]
            self.sizes = [s for s in system.size_names if s in reads]

    def scaling(self, text: PythonText) -> list[str]:
        """The lines that compute the weights of scaled stages."""
        if self.plan.basis is None:
            return []
        weights = ("coef_", "rows_", "ns_", "scales_")
        lines = [text.call("scale_weights", *weights, "weights_")]
        return lines + [f"c{q}_ = {text.call('constant_weight', *weights, str(q + 1))}" for q in range(len(self.constants))]

    def parts(self) -> list[Slice]:
        parts = super().parts()
        if self.plan.basis is not None:
            (state,) = self.states
            parts = [*parts[:1], Slice(self.plan.basis.temporary, "out_", whole(0), state.end, state.shape)]
        return parts[1:] if self.plan.local else parts

    def _setup(self, text: PythonText) -> list[str]:
        return [*self.scaling(text), *(self.state.setup(text) if self.state is not None else [])]

    def stores(self) -> list[nest.Set]:
        if self.plan.basis is None:
            return super().stores()
        numbers = [self.plan.basis.scale, *self.plan.basis.weights]
        return [nest.Set(element("scale_", whole(q)), self.nests.printer.tree(e)) for q, e in enumerate(numbers)]


def multiplies(nodes: Iterable[nest.Node]) -> bool:
    """Whether there are products of matrices in nodes."""
    return any(isinstance(node, nest.Multiply) for node in nest.nodes_of(nodes))


def numbers_of(nodes: Iterable[nest.Node]) -> list[str]:
    """The names that nodes give values outside of loops, each once."""
    targets = (node.target for node in nodes if isinstance(node, nest.Set | nest.Total))
    return list(dict.fromkeys(target.id for target in targets if isinstance(target, ast.Name)))


def _slices(of: str, parts: list[tuple[str, tuple[Any, ...]]]) -> list[Slice]:
    """The parts of a flat array, one after another."""
    out, start = list[Slice](), sp.S.Zero
    for part, shape in parts:
        end = sp.expand(start + sp.prod(shape))
        out.append(Slice(part, of, whole(start), whole(end), tuple(map(whole, shape))))
        start = end
    return out


def slice_line(s: Slice, text: PythonText) -> str:
    """The line that names a part of a flat array."""
    if len(s.shape) > 1:
        return f"{s.name} = {text.call('part_of', s.of, text(s.start), shape_text(s.shape, text))}"
    return f"{s.name} = {text.call('block', s.of, text(s.start), text(s.end)) if s.shape else text(element(s.of, s.start))}"


def shape_text(shape: Sequence[Tree], text: PythonText) -> str:
    """A shape as text: M, or (S, K + 1)."""
    return f"({', '.join(map(text, shape))})" if len(shape) > 1 else text(shape[0])
