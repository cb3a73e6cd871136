"""Nests in C++, their loops divided among the threads of a team: a phase after the other, all threads wait for each other between two.

for n in range(K): for b in range(S): r[n, b] = ...       each thread takes elements
Blocks(...), Fold(0, "sum")                                each warp takes blocks of 1024: lane l adds elements l, l + 32, ...
Total(r0)                                                  the threads of a block add halves

However many threads there are, the order of every sum is that of odesim.runtime.sums. Additions onto gathered places are made by one
thread a place, in the order of the nest.

The loops of a block become one, with its sums:
for k: a[k] = f(k); for k: b[k] = g(a[k]); fold(b)  ->  for k: a_ = f(k); b_ = g(a_); sum += b_; a[k] = a_; b[k] = b_
Memory is slow to answer, so that many numbers are asked for at once: a short body is done for four elements together, whose results are
stored when all of them are known.
"""

import ast
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from odesim.base.errors import CodegenError
from odesim.base.parsing import margin
from odesim.targets import nest
from odesim.targets.cuda_text import ExpressionText, ModuleScope, Translation
from odesim.targets.cuda_words import INT, REAL, Typed, named
from odesim.targets.expressions import Tree, added, call, element, name, whole
from odesim.targets.numba_text import Slice

AT_ONCE = 4  # elements; the numbers of more take too many registers (128 are there for a thread)
SHORT = 400  # characters of a body that is written for so many elements: longer ones wait less for memory, and NVRTC takes as many times
SUMS = 64  # that are one number, in one kernel
UNROLL = '_Pragma("unroll")'
WAIT = "odesim_wait(team);"
HIGH = "hi_"


@dataclass(frozen=True)
class ArrayType:
    """The type of an array: that of its elements, and its lengths in C++."""

    entry: str
    shape: tuple[str, ...]


@dataclass
class BlockCode:
    """The body of the loop over a block for `count` elements together. stored: {where an array begins: what is stored at the index}.

    read: arrays that it reads from memory.
    """

    count: int
    first: list[str] = field(default_factory=list)
    compute: list[str] = field(default_factory=list)
    store: list[str] = field(default_factory=list)
    stored: dict[str, Typed] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def keep(self, base: str, entry: str, guard: str = "") -> str:
        """The name of what is stored at the index into the array that begins there."""
        local = f"v{len(self.stored)}_"
        self.first.append(f"{entry} {local}[{self.count}];")
        self.store.append(f"{guard}{base}[j_] = {local}[u_];")
        self.stored[base] = Typed(entry, f"{local}[u_]")
        return local

    def lines(self) -> list[str]:
        each, index = f"{UNROLL} for (int u_ = 0; u_ < {self.count}; ++u_) {{", "    const long long j_ = i_ + 32 * u_;"
        return [*self.first, *(line for part in (self.compute, self.store) for line in (each, index, *margin(part), "}"))]


class TeamText(ExpressionText):
    """The C++ body of one kernel. arrays, numbers: types of names. late: stages that are added to the state without a rounding between."""

    def __init__(
        self, translation: Translation, scope: ModuleScope, arrays: Mapping[str, ArrayType], numbers: Mapping[str, str], late: int = 0
    ) -> None:
        super().__init__(translation, scope, numbers)
        self.late, self.arrays = late, dict(arrays)
        self.scratch: dict[str, int] = {}  # names of blocks that are only summed: their slots
        self.bases: dict[str, str] = {}  # views of arrays: where they begin
        self.element = ""  # the index of the loop over a block that is being written
        self.block = BlockCode(0)
        self.sums = 0  # that are one number, so far

    def lines(self, parts: Sequence[Slice], nodes: Sequence[nest.Node]) -> list[str]:
        """The declarations and phases of the body."""
        self._body(parts, nodes)
        self.sums = 0
        body = self._body(parts, nodes)  # now that all types are known
        return [*self.declared(), *body]

    def _body(self, parts: Sequence[Slice], nodes: Sequence[nest.Node]) -> list[str]:
        lines, left = [self._slice(part) for part in parts], list(nodes)
        while left:
            totals = list(itertools.takewhile(_is_number, left))
            if totals:
                lines += self._numbers(totals)  # type: ignore[arg-type]
                left = left[len(totals) :]
                after = next((node for node in left if not isinstance(node, nest.Set) or not isinstance(node.target, ast.Name)), None)
                if isinstance(after, nest.Loop | nest.Blocks) and not _folds(after):
                    lines.pop()  # all threads have read the sums when they come to the wait after that loop, which writes none
            else:
                lines += self._phase(left.pop(0))
        return lines[:-1] if lines and lines[-1] == WAIT else lines  # the order is done when each block is

    def _slice(self, part: Slice) -> str:
        """A part of the flat state or output: an array, or one number."""
        flat = self._value(name(part.of))
        if not part.shape:
            return self._set(nest.Set(name(part.name), element(part.of, part.start)))
        start, end = self.value(part.start), self.value(part.end)
        shape = tuple(map(self.value, part.shape)) if len(part.shape) > 1 else (f"({end} - {start})",)
        return self._view(part.name, Typed(ArrayType(flat.type.entry, shape), f"({flat.text} + {start})"))

    def _phase(self, node: nest.Node) -> list[str]:
        match node:
            case nest.Set(target=ast.Subscript()):
                return [f"if (team.thread == 0) {{ {self._set(node)} }}"]
            case nest.Set():
                return [self._set(node)]
            case nest.Fill(array, value):
                total = " * ".join(f"({n})" for n in self.arrays[array.id].shape)
                return [*_shared(total, [f"{named(array.id)}[e_] = {self.value(value)};"]), WAIT]
            case nest.Loop() if any(isinstance(inner, nest.Multiply) for inner in nest.nodes_of([node])):
                return [*self._products(node), WAIT]
            case nest.Multiply():
                return [*self._products(node), WAIT]
            case nest.Loop() | nest.Blocks():
                return self._nest(node)
            case nest.PartialSums():
                return [*self._partial_sums(node), WAIT]
            case nest.Inverse(matrices, result, copy, count, n):
                from odesim.runtime.matrices import invert_one  # imports numba

                (entry, copied), (_, inverse), (_, original) = (self._vector(a, whole(0)) for a in (matrices, result, copy))
                length = self.value(n)
                function = self.translation.imported(invert_one, (f"{entry}*", f"{entry}*", f"{entry}*", INT, INT))
                arguments = f"{copied}, {inverse}, {original}, e_ * ({length}) * ({length}), {length}"
                return [*_shared(self.value(count), [f"{function.name}({arguments});"]), WAIT]
        raise TypeError(node)

    def _set(self, node: nest.Set) -> str:
        """The text of an assignment."""
        value = self._value(ast.BinOp(node.target, ast.Add(), node.value) if node.add else node.value)
        if isinstance(node.target, ast.Name):
            self.learn(node.target.id, value.type)
            return f"{named(node.target.id)} = {value.text};"
        return f"{self.value(node.target)} = {value.text};"

    def _sets(self, nodes: Iterable[nest.Node]) -> list[str]:
        return [self._set(node) for node in nodes if isinstance(node, nest.Set)]

    def _numbers(self, nodes: Sequence[nest.Total]) -> list[str]:
        """Sums over all blocks, each one number: those of neighbouring slots together, a row each."""
        out: list[str] = []
        for (op, *_), group in itertools.groupby(enumerate(nodes), lambda p: (p[1].op, ast.dump(p[1].extent), p[1].slot - p[0])):
            totals = [total for _, total in group]
            blocks, first = ast.BinOp(added(totals[0].extent, whole(nest.BLOCK - 1)), ast.FloorDiv(), whole(nest.BLOCK)), totals[0].slot
            count = self.value(blocks)
            self.sums += len(totals)
            if self.sums > SUMS:
                raise CodegenError(f"the right-hand side has more than {SUMS} sums that are one number")
            out.append(f"odesim_tree<{_is_most(op)}>(team, part_ + {first} * {count}, {count}, {len(totals)});")
            for k, total in enumerate(totals):
                assert isinstance(total.target, ast.Name)
                self.learn(total.target.id, REAL)
                out.append(f"{named(total.target.id)} = (part_ + {first + k} * {count})[0];")
        return [*out, WAIT]

    def _nest(self, node: nest.Node) -> list[str]:
        """The loops around the innermost statements, and what each loop computes before them."""
        loops, before, after = list[nest.Loop](), list[nest.Node](), list[nest.Node]()
        while isinstance(node, nest.Loop):
            loops.append(node)
            self.learn(node.index, INT)
            inner = [k for k, s in enumerate(node.body) if isinstance(s, nest.Loop | nest.Blocks)]
            if not inner:
                return self._elements(loops, before, node.body)
            if len(inner) > 1:
                raise CodegenError(f"no C++ form of two loops in one, over {node.index}")
            (place,) = inner
            before, after, node = before + node.body[:place], node.body[place + 1 :], node.body[place]
        assert isinstance(node, nest.Blocks)
        return self._rows(loops, before, node, after)

    def _elements(self, loops: list[nest.Loop], before: list[nest.Node], body: list[nest.Node]) -> list[str]:
        """A loop over elements, the last index fastest. One thread does all additions to a gathered element, in order, in inner loops."""
        shared = loops
        for s in body:
            if isinstance(s, nest.Set) and s.add:
                assert isinstance(s.target, ast.Subscript)
                index = s.target.slice.elts if isinstance(s.target.slice, ast.Tuple) else [s.target.slice]
                direct = {i.id for i in index if isinstance(i, ast.Name)}
                shared = [loop for loop in loops if loop.index in direct]
        inside = [(named(loop.index), self.value(loop.extent)) for loop in loops if loop not in shared]
        total = self._total(shared)
        match body:
            case [nest.Set(target=ast.Subscript(), add=False) as only] if not inside:
                several = self._several(shared, before, only)
                if several:
                    return [*several, WAIT]
        # no atomic additions: their order, and so the bits, would change from run to run
        lines = [f"for ({i} = 0; {i} < {n}; {i} += 1) {{" for i, n in inside]
        lines += [*self._sets(before), *self._sets(body), *("}" for _ in inside)]
        return [*_shared(total, [*self._indices(shared), *lines]), WAIT]

    def _several(self, loops: list[nest.Loop], before: list[nest.Node], node: nest.Set) -> list[str]:
        """A short assignment to each element, for several elements at once; nothing for a longer one."""
        first = [*self._indices(loops), *self._sets(before)]
        value, place = self.value(node.value), self._value(node.target)
        # exponentials and the like are inlined and fill the registers by themselves
        if len(value) > SHORT or "elementary_" in "".join([*first, value]):
            return []
        lines = ["long long e_ = i_e_ + u_ * team.threads;", *first, f"place_[u_] = &{place.text};", f"value_[u_] = {value};"]
        return [
            "{",
            f"    const long long n_e_ = {self._total(loops)};",
            "    long long i_e_ = team.thread;",
            f"    for (; i_e_ + {AT_ONCE - 1} * team.threads < n_e_; i_e_ += {AT_ONCE} * team.threads) {{",
            f"        {place.type} value_[{AT_ONCE}], *place_[{AT_ONCE}];",
            f"        {UNROLL} for (int u_ = 0; u_ < {AT_ONCE}; ++u_) {{",
            *(f"            {line}" for line in lines),
            "        }",
            f"        {UNROLL} for (int u_ = 0; u_ < {AT_ONCE}; ++u_) *place_[u_] = value_[u_];",
            "    }",
            "    for (; i_e_ < n_e_; i_e_ += team.threads) {",
            "        long long e_ = i_e_;",
            *(f"        {line}" for line in [*first, f"{place.text} = {value};"]),
            "    }",
            "}",
        ]

    def _rows(self, loops: list[nest.Loop], before: list[nest.Node], node: nest.Blocks, after: list[nest.Node]) -> list[str]:
        """The blocks of all rows, one warp each; then the sums of the rows."""
        length, rows = self.value(node.extent), self._total(loops)
        self.learn(nest.LOW, INT)
        where = ["const long long row_ = e_ / width_, b_ = e_ % width_;", "e_ = row_;", *self._indices(loops), "lo_ = b_ * 1024;"]
        lines = [*where, *self._sets(before), *self._blocks(node)]
        head = f"const long long height_ = {rows}, width_ = ({length} + 1023) / 1024;"
        loop = ["for (long long g_ = team.warp; g_ < height_ * width_; g_ += team.warps) {", "    long long e_ = g_;"]
        out = ["{", *margin([head, *loop, *margin(lines), "}", WAIT])]
        for s in after:
            assert isinstance(s, nest.Total)
            put = f"{self.value(s.target)} = part_[e_ * width_];"
            each = _shared("height_", ["const long long f_ = e_;", *self._indices(loops), "e_ = f_;", put])
            out += margin([f"odesim_tree<{_is_most(s.op)}>(team, part_, width_, height_);", *each, WAIT])
        return [*out, "}"]

    def _products(self, node: nest.Node) -> list[str]:
        """A matrix product, perhaps in loops: all threads work on one after the other, and each adds to elements of its own."""
        if isinstance(node, nest.Loop):
            self.learn(node.index, INT)
            i, (body,) = named(node.index), node.body
            return [f"for ({i} = 0; {i} < {self.value(node.extent)}; {i} += 1) {{", *margin(self._products(body)), "}"]
        assert isinstance(node, nest.Multiply)
        vectors = [self._vector(*a) for a in node.arrays]
        arguments = [*(text for _, text in vectors), *map(self.value, (*node.steps, *node.shape, node.add))]
        return [f"odesim_product<{vectors[0][0]}>(team, {', '.join(arguments)});"]

    def _partial_sums(self, node: nest.PartialSums) -> list[str]:
        """Partial sums in the order of odesim.runtime.sums, each line along the axis by one thread."""
        entry, array = self._vector(node.array, whole(0))
        before, n, after = (f"({self.value(a)})" for a in (node.before, node.n, node.after))
        first, step = (f"({n} - 1) * {after}", f"-{after}") if node.downwards else ("0", after)
        head = f"{entry}* p_ = {array} + e_ / {after} * {n} * {after} + e_ % {after} + {first};"
        line = f"for (long long q_ = 1; q_ < {n}; q_ += 1) {{ p_[{step}] = p_[{step}] + p_[0]; p_ += {step}; }}"
        return _shared(f"{before} * {after}", [head, line])

    def _vector(self, array: str, start: Tree) -> tuple[str, str]:
        """(type of an element, address) of the memory of an array from a place on."""
        held = self._value(name(array))
        return held.type.entry, f"{held.text} + {self.value(start)}"

    def _total(self, loops: Iterable[nest.Loop]) -> str:
        return " * ".join(f"({self.value(loop.extent)})" for loop in loops) or "1"

    def _indices(self, loops: Sequence[nest.Loop]) -> list[str]:
        """Code that computes the loops' indices from e_, which it changes."""
        inner = [f"{named(loop.index)} = odesim_split(e_, {self.value(loop.extent)});" for loop in reversed(loops[1:])]
        return [*inner, f"{named(loops[0].index)} = e_;"] if loops else []

    # -- one block

    def _blocks(self, node: nest.Blocks) -> list[str]:
        """The loops over the elements of a block as one loop, and the sums of the block."""
        lines = [self._set(nest.Set(name(HIGH), call("min", added(name(nest.LOW), whole(nest.BLOCK)), node.extent)))]
        if node.forms:
            lines.append(self._view(nest.HERE, self._part(nest.Part("y_"))))
        for view in node.views:
            if view.part.array == nest.WORK:
                self.scratch[view.name] = _slot(view.part)
            elif view.length is not None:
                flat = self._value(name(view.part.array))
                whole_ = ArrayType(flat.type.entry, (self.value(view.length),))
                lines.append(self._view(view.name, Typed(whole_, f"({flat.text} + {self.value(whole(0))})")))
            else:
                lines.append(self._view(view.name, self._part(view.part)))
        maxima = {_sum_of(fold) for fold in node.folds if fold.op == "max"}
        for k in dict.fromkeys(map(_sum_of, node.folds)):
            lines.append(f"double acc{k}_ = {'-ODESIM_INF' if k in maxima else '0.0'}, u{k}_ = 0.0, w{k}_ = 0.0;")
        one = self._element(node, maxima, 1)
        lines.append("long long i_ = team.lane;")
        # four elements at once hide the latency of memory; long bodies are bound by arithmetic, and NVRTC takes four times as long for them
        if sum(map(len, one)) < SHORT * 3:
            head = f"for (; i_ + {32 * (AT_ONCE - 1)} < hi_ - lo_; i_ += {32 * AT_ONCE}) {{"
            lines += [head, *margin(self._element(node, maxima, AT_ONCE)), "}"]
        lines += ["for (; i_ < hi_ - lo_; i_ += 32) {", *margin(one), "}"]
        for fold in node.folds:
            k, op = _sum_of(fold), "max" if fold.op == "max" else "sum"
            total = f"odesim_fold_{op}(acc{k}_, u{k}_, w{k}_, hi_ - lo_)"
            lines.append(f"odesim_keep(team, part_ + ({fold.slot} * height_ + row_) * width_ + b_, {total});")
        return lines

    def _element(self, node: nest.Blocks, maxima: set[str], count: int) -> list[str]:
        """The body of a block's loop for `count` elements, i_ the first of them."""
        block = self.block = BlockCode(count)
        if node.forms:
            state = self._value(name(nest.HERE))
            stages = ", ".join(self.value(name(x)) for x in ("x_", "k_", "rows_", "coef_", "ns_"))
            # no later loop reads the state, and the integrator asks for it where it names a place
            local = block.keep(self._base(state.text), state.type.entry, "if (z0_) " if self.late else "")
            block.first.append(f"odesim_combine<{self.late}, {count}>({stages}, n_, lo_ + i_, 32, {local});")
        if node.elements is not None:
            self._statements(node.elements, maxima)
        for fold in node.folds:
            if fold.of[0].array != nest.WORK:
                parts = [self._read(self._part(part)) for part in fold.of]
                self._summand(_sum_of(fold), " * ".join(p.text for p in parts), maxima)
        # lanes of other warps may be ahead or behind: an element of another index may or may not be stored yet, so no such text is written
        if not set(map(self._root, block.stored)).isdisjoint(map(self._root, block.read)):
            raise CodegenError("no C++ form of a block that reads other elements of what it stores")
        self.block = BlockCode(0)
        return block.lines()

    def _statements(self, loop: nest.Elements, maxima: set[str]) -> None:
        block = self.block
        self.types[loop.index] = INT
        block.compute.append(f"{named(loop.index)} = j_;")
        self.element = named(loop.index)
        for s in loop.body:
            match s.target:
                case ast.Subscript(value=ast.Name(id=array)) if array in self.scratch:
                    self._summand(f"s{self.scratch[array]}", self.value(s.value), maxima)
                case ast.Subscript(value=ast.Name(id=array)):
                    value = self.value(s.value)
                    local = block.keep(self._base(named(array)), self.arrays[array].entry)
                    block.compute.append(f"{local}[u_] = {value};")
                case _:
                    block.compute.append(self._set(s))
        self.element = ""

    def _summand(self, k: str, value: str, maxima: set[str]) -> None:
        """Adds a summand to a lane's sum, and keeps those of the first 64 elements: without more they count in sequence."""
        term = f"f{k}_[u_]"
        more = f"odesim_larger(acc{k}_, {term})" if k in maxima else f"acc{k}_ + {term}"
        self.block.first.append(f"double f{k}_[{self.block.count}];")
        self.block.compute.append(f"{term} = {value};")
        self.block.store.append(f"if (j_ < 32) u{k}_ = {term}; else if (j_ < 64) w{k}_ = {term};  acc{k}_ = {more};")

    def _read(self, array: Typed) -> Typed:
        """The element of a block at the index of its loop, which a loop before may just have computed."""
        return self.block.stored.get(self._base(array.text)) or self._load(array, "j_")

    def _load(self, array: Typed, place: str) -> Typed:
        """The element of an array in memory at a place."""
        self.block.read.add(array.text)
        return Typed(array.type.entry, f"{array.text}[{place}]")

    def _base(self, text: str) -> str:
        """Where the array of this C++ text begins, however it is called."""
        while text in self.bases:
            text = self.bases[text]
        return text

    def _root(self, text: str) -> str:
        """The array in which the view of this C++ text lies."""
        while (base := self._base(text)) != text:
            text = base.lstrip("(").partition(" ")[0]
        return text

    def _view(self, view: str, of: Typed) -> str:
        """The line that gives a part of an array a name."""
        self.arrays[view] = of.type
        self.learn(view, f"{of.type.entry}*")
        self.bases[named(view)] = of.text
        return f"{named(view)} = {of.text};"

    def _part(self, part: nest.Part) -> Typed:
        """The elements of a block in an array, or in a row of it."""
        if part.array == nest.HERE:
            return self._value(name(nest.HERE))
        first, low, high = part.row[:-1], self.value(name(nest.LOW)), self.value(name(HIGH))
        base = self._value(element(part.array, *first) if first else name(part.array))
        self.block.read.add(base.text)
        start = f"({self.value(part.row[-1])}) * ({base.type.shape[1]}) + {low}" if part.row else low
        return Typed(ArrayType(base.type.entry, (f"({high} - {low})",)), f"({base.text} + {start})")

    # -- expressions

    def value(self, e: Tree) -> str:
        """The C++ text of a tree."""
        return self._value(e).text

    def _value(self, node: ast.expr) -> Typed:
        match node:
            case ast.Name(id=array) if array in self.arrays:
                return Typed(self.arrays[array], named(array))
            case ast.Subscript(value=ast.Name(id=array), slice=index) if array in self.arrays:
                held, parts = self.arrays[array], index.elts if isinstance(index, ast.Tuple) else [index]
                place = self.value(parts[0])
                for part, n in zip(parts[1:], held.shape[1:], strict=False):
                    place = f"({place}) * ({n}) + {self.value(part)}"
                rest = held.shape[len(parts) :]
                if place == self.element and not rest:
                    return self._read(Typed(held, named(array)))
                if rest:  # a row
                    self.block.read.add(named(array))
                    return Typed(ArrayType(held.entry, rest), f"({named(array)} + {' * '.join(f'({n})' for n in (place, *rest))})")
                return self._load(Typed(held, named(array)), place)
        return super()._value(node)


def _shared(total: str, lines: list[str]) -> list[str]:
    """Code that runs for e_ = 0, 1, ..., divided among the threads; it may change e_."""
    head = f"for (long long n_e_ = {total}, i_e_ = team.thread; i_e_ < n_e_; i_e_ += team.threads) {{"
    return [head, "    long long e_ = i_e_;", *margin(lines), "}"]


def _is_number(node: nest.Node) -> bool:
    """Whether a node is a sum over all blocks that is one number."""
    return isinstance(node, nest.Total) and isinstance(node.target, ast.Name)


def _is_most(op: str) -> str:
    return "true" if op == "max" else "false"


def _folds(node: nest.Node) -> bool:
    return any(isinstance(inner, nest.Blocks) and inner.folds for inner in nest.nodes_of([node]))


def _slot(part: nest.Part) -> int:
    """The number of a block of scratch memory."""
    (slot,) = part.row
    assert isinstance(slot, ast.Constant)
    return int(str(slot.value))


def _sum_of(fold: nest.Fold) -> str:
    """The name of a lane's sum: that of a block of scratch memory, or of its own."""
    return f"s{_slot(fold.of[0])}" if fold.of[0].array == nest.WORK else f"p{fold.slot}"
