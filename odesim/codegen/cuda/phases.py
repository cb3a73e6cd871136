"""Translates a generated kernel of one large system into C++ whose loops are divided among many threads.

for n in range(K): for b in range(S): r[n, b] = ...       each thread takes elements
part_[0, lo_ // 1024] = block_sum(work_[0], hi_ - lo_)    each warp takes blocks of 1024: lane l adds elements l, l + 32, ...
r0 = tree_sum(part_[0], w)                                the threads of a block add halves

Between two loops all threads wait for each other. However many threads there are, the order of every sum is that of
odesim.codegen.runtime.reduce. Additions onto gathered places are made by one thread a place, in the kernel's order.
"""

import ast
from dataclasses import dataclass
from typing import Any

from odesim.base.parsing import parse
from odesim.codegen.cuda.scope import Functions, ModuleScope
from odesim.codegen.cuda.statements import FunctionText
from odesim.codegen.cuda.words import INT, REAL, Typed, named
from odesim.errors import CodegenError

WAIT = "odesim_wait(team);"
SUMS = 64
"""Sums that are one number, in one kernel."""
Loops = list[tuple[str, ast.expr]]


@dataclass(frozen=True)
class ArrayType:
    """The type of an array: that of its elements, and its lengths in C++."""

    entry: str
    shape: tuple[str, ...]


class Phases(FunctionText):
    """The C++ body of a kernel. arrays, numbers: types of names. late: stages that are added to the state without a rounding between."""

    def __init__(
        self,
        translation: Functions,
        scope: ModuleScope,
        node: ast.FunctionDef,
        arrays: dict[str, ArrayType],
        numbers: dict[str, str],
        late: int = 0,
    ) -> None:
        super().__init__(translation, scope, node, numbers)
        self.late = late
        self.arrays = dict(arrays)
        self.scratch: dict[str, int] = {}  # names of blocks that are only summed: their slots
        self.maxima: set[int] = set()
        self.sums = 0

    def lines(self) -> list[str]:
        """The declarations and phases of the body."""
        body = self._phases()
        self.sums = self.temporaries = 0
        body = self._phases()  # now that all types are known
        return [*self.declared(), *body]

    def length(self, text: str) -> str:
        """The C++ text of a length given in Python."""
        return self._value(parse(text, mode="eval").body).text

    def _phases(self) -> list[str]:
        return [line for node in self.node.body for line in self._phase(node)]

    def _phase(self, node: Any) -> list[str]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=("tree_sum" | "tree_max") as tree), args=args)):
                return self._number(name, tree, args)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array), slice=ast.Constant(value=x))], value=value) if x is ...:
                total = " * ".join(f"({n})" for n in self.arrays[array].shape)
                return [*_shared(total, [f"{named(array)}[e_] = {self._value(value).text};"]), WAIT]
            case ast.Assign(targets=[ast.Subscript()]):
                return [f"if (team.thread == 0) {{ {' '.join(self._statement(node))} }}"]
            case ast.For() if _calls(node, "product"):
                return [*self._products(node), WAIT]
            case ast.For():
                return self._nest(node)
            case ast.Expr(value=ast.Call(func=ast.Name(id="product"))):
                return [*self._products(node), WAIT]
            case ast.Expr(value=ast.Call(func=ast.Name(id=("add_up" | "add_down") as word), args=args)):
                return [*self._partial_sums(word, args), WAIT]
            case ast.Expr(value=ast.Call(func=ast.Name(id="invert"), args=[a, x, matrix, count, n])):
                from odesim.codegen.runtime.inverse import invert_one  # imports numba

                (entry, copied), (_, result), (_, kept), length = (*map(self._vector, (a, x, matrix)), self._value(n).text)
                made = self.translation.imported(invert_one, (f"{entry}*", f"{entry}*", f"{entry}*", INT, INT))
                call = f"{made.name}({copied}, {result}, {kept}, e_ * ({length}) * ({length}), {length});"
                return [*_shared(self._value(count).text, [call]), WAIT]
        return self._statement(node)

    def _number(self, name: str, tree: str, args: list[ast.expr]) -> list[str]:
        """A sum over all blocks whose result is one number."""
        place, self.sums = self.sums, self.sums + 1
        if place >= SUMS:
            raise CodegenError(f"the right-hand side has more than {SUMS} sums that are one number")
        count = self._value(args[1]).text
        self._learn(name, REAL)
        part = f"part_ + {_slot(args[0])} * {count}"
        return [f"odesim_{tree}(team, {part}, {count}, 1);", f"{named(name)} = ({part})[0];", WAIT]

    # -- loops

    def _nest(self, node: Any) -> list[str]:
        """The loops around the innermost statements, and what each loop computes before them."""
        loops: Loops = []
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        while not _is_blocked(node):
            assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
            loops.append((node.target.id, node.iter.args[0]))
            self._learn(node.target.id, INT)
            inner = [s for s in node.body if isinstance(s, ast.For)]
            if not inner:
                return self._elements(loops, before, node.body)
            if len(inner) > 1:
                raise CodegenError(f"no C++ form of two loops in one: {ast.unparse(node)[:60]}")
            place = node.body.index(inner[0])
            before, after = before + node.body[:place], node.body[place + 1 :]
            node = inner[0]
        return self._rows(loops, before, node, after)

    def _elements(self, loops: Loops, before: list[ast.stmt], body: list[ast.stmt]) -> list[str]:
        """A loop over elements, the last index fastest. One thread does all additions to a gathered element, in order, in inner loops."""
        shared = loops
        for s in body:
            if isinstance(s, ast.AugAssign):
                assert isinstance(s.target, ast.Subscript)
                index = s.target.slice.elts if isinstance(s.target.slice, ast.Tuple) else [s.target.slice]
                direct = {i.id for i in index if isinstance(i, ast.Name)}
                shared = [loop for loop in loops if loop[0] in direct]
        inside = [(named(i), self._value(n).text) for i, n in loops if (i, n) not in shared]
        lines = [f"for ({i} = 0; {i} < {n}; {i} += 1) {{" for i, n in inside]
        lines += [*self._block(before), *self._block(body), *("}" for _ in inside)]
        total = self._total(shared)
        return [*_shared(total, [*self._indices(shared), *lines]), WAIT]

    def _rows(self, loops: Loops, before: list[ast.stmt], blocked: Any, after: list[ast.stmt]) -> list[str]:
        """The blocks of all rows, one warp each; then the sums of the rows."""
        assert isinstance(blocked.iter, ast.Call)
        length, rows = self._value(blocked.iter.args[1]).text, self._total(loops)
        self._learn("lo_", INT)
        folds = {
            _slot(call.args[0]): call.func.id for call in _calls(blocked, "block_sum", "block_max", "block_dot") if _is_work(call.args[0])
        }  # type: ignore[attr-defined]
        self.maxima = {slot for slot, name in folds.items() if name == "block_max"}
        lines = [f"double acc{k}_ = {'-ODESIM_INF' if k in self.maxima else '0.0'}, u{k}_ = 0.0, w{k}_ = 0.0;" for k in sorted(folds)]
        lines += ["const long long row_ = e_ / width_, b_ = e_ % width_;", "e_ = row_;", *self._indices(loops), "lo_ = b_ * 1024;"]
        lines += [*self._block(before), *(line for s in blocked.body for line in self._in_block(s))]
        head = f"const long long height_ = {rows}, width_ = ({length} + 1023) / 1024;"
        loop = ["for (long long i_ = team.warp; i_ < height_ * width_; i_ += team.warps) {", "    long long e_ = i_;"]
        out = ["{", f"    {head}", *(f"    {line}" for line in [*loop, *(f"    {line}" for line in lines), "}"]), f"    {WAIT}"]
        for s in after:
            assert isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name)
            out.append(f"    odesim_{s.value.func.id}(team, part_, width_, height_);")
            put = f"{self._value(s.targets[0]).text} = part_[e_ * width_];"
            out += [
                f"    {line}" for line in [*_shared("height_", ["const long long f_ = e_;", *self._indices(loops), "e_ = f_;", put]), WAIT]
            ]
        return [*out, "}"]

    def _in_block(self, s: Any) -> list[str]:
        match s:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id="work_")) as work):
                self.scratch[name] = _slot(work)
                return []
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="part_"), slice=ast.Tuple(elts=[ast.Constant() as place, _]))]):
                return [f"odesim_keep(team, part_ + ({place.value!r} * height_ + row_) * width_ + b_, {self._folded(s.value)});"]
            case ast.For(target=ast.Name(id=i), iter=ast.Call(args=[extent])):
                self._learn(i, INT)
                v = named(i)
                return [f"for ({v} = team.lane; {v} < {self._value(extent).text}; {v} += 32) {{", *self._inner(s.body), "}"]
            case ast.Expr(value=ast.Call(func=ast.Name(id="combine_block"), args=[x, k, places, coef, ns, _, _, out])):
                stages = ", ".join(self._value(a).text for a in (x, k, places, coef, ns))
                element = f"odesim_combined<{self.late}>({stages}, n_, lo_ + i_)"
                return [f"for (long long i_ = team.lane; i_ < hi_ - lo_; i_ += 32) {self._value(out).text}[i_] = {element};"]
        return self._statement(s)

    def _folded(self, value: Any) -> str:
        """block_sum, block_max or block_dot of one block; lane 0 has the result."""
        assert isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        op, count = value.func.id.removeprefix("block_"), self._value(value.args[-1]).text
        if _is_work(value.args[0]):
            slot = _slot(value.args[0])
            return f"odesim_fold_{op}(acc{slot}_, u{slot}_, w{slot}_, {count})"
        return f"odesim_block_{op}(team, {', '.join(self._value(a).text for a in value.args[:-1])}, {count})"

    def _products(self, node: Any) -> list[str]:
        """A matrix product, perhaps in loops: all threads work on one after the other, and each adds to elements of its own."""
        if isinstance(node, ast.For):
            assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
            self._learn(node.target.id, INT)
            i, (body,) = named(node.target.id), node.body
            head = f"for ({i} = 0; {i} < {self._value(node.iter.args[0]).text}; {i} += 1) {{"
            return [head, *(f"    {line}" for line in self._products(body)), "}"]
        *arrays, steps, shape, add = node.value.args
        entry, vectors = self._vector(arrays[0])[0], [self._vector(a)[1] for a in arrays]
        given = ", ".join([*vectors, *self._whole(steps), *self._whole(shape), self._value(add).text])
        return [f"odesim_product<{entry}>(team, {given});"]

    def _partial_sums(self, word: str, args: list[Any]) -> list[str]:
        """Partial sums in the order of odesim.codegen.runtime.running, each line along the axis by one thread."""
        entry, array = self._vector(args[0])
        before, n, after = (f"({self._value(a).text})" for a in args[1:])
        first, step = ("0", after) if word == "add_up" else (f"({n} - 1) * {after}", f"-{after}")
        head = f"{entry}* p_ = {array} + e_ / {after} * {n} * {after} + e_ % {after} + {first};"
        line = f"for (long long q_ = 1; q_ < {n}; q_ += 1) {{ p_[{step}] = p_[{step}] + p_[0]; p_ += {step}; }}"
        return _shared(f"{before} * {after}", [head, line])

    def _vector(self, node: Any) -> tuple[str, str]:
        """(type of an element, address) of vector(array, start)."""
        array = self._value(node.args[0])
        return array.type.entry, f"{array.text} + {self._value(node.args[1]).text}"

    def _whole(self, node: Any) -> list[str]:
        return [self._value(part).text for part in node.elts]

    def _total(self, loops: Loops) -> str:
        return " * ".join(f"({self._value(n).text})" for _, n in loops) or "1"

    def _indices(self, loops: Loops) -> list[str]:
        """Code that computes the loops' indices from e_, which it changes."""
        return [
            line for i, n in reversed(loops) for line in (f"{named(i)} = e_ % ({self._value(n).text});", f"e_ /= ({self._value(n).text});")
        ]

    # -- what arrays add to the language

    def _statement(self, node: Any) -> list[str]:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=("block" | "row_block" | "part_of") as what), args=args)
            ):
                view = self._view(what, args)
                self.arrays[name] = view.type
                self._learn(name, f"{view.type.entry}*")
                return [f"{named(name)} = {view.text};"]
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in self.arrays:
                self.arrays[name] = self.arrays[other]
                self._learn(name, f"{self.arrays[other].entry}*")
                return [f"{named(name)} = {named(other)};"]
            case ast.Expr(value=ast.Call(func=ast.Name(id="store"), args=[_, _, ast.Name(id=array), i, value])):
                if array in self.scratch:
                    return [self._summand(self.scratch[array], self._value(i).text, self._value(value).text)]
                return [f"{named(array)}[{self._value(i).text}] = {self._value(value).text};"]
        return super()._statement(node)

    def _summand(self, slot: int, i: str, value: str) -> str:
        """Code that keeps a lane's summands of the first 64, which are added in sequence if there are no more."""
        added = f"odesim_larger(acc{slot}_, f_)" if slot in self.maxima else f"acc{slot}_ + f_"
        return f"{{ const double f_ = {value}; if ({i} < 32) u{slot}_ = f_; else if ({i} < 64) w{slot}_ = f_; acc{slot}_ = {added}; }}"

    def _view(self, what: str, args: list[ast.expr]) -> Typed:
        base = self._value(args[0])
        entry = base.type.entry
        if what == "part_of":
            assert isinstance(args[2], ast.Tuple)
            return Typed(ArrayType(entry, tuple(self._value(n).text for n in args[2].elts)), f"({base.text} + {self._value(args[1]).text})")
        rest = [self._value(a).text for a in args[1:]]
        low, high = rest[-2:]
        start = low if what == "block" else f"({rest[0]}) * ({base.type.shape[1]}) + {low}"
        return Typed(ArrayType(entry, (f"({high} - {low})",)), f"({base.text} + {start})")

    def _value(self, node: Any) -> Typed:
        match node:
            case ast.Name(id=name) if name in self.arrays:
                return Typed(self.arrays[name], named(name))
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self.arrays:
                held, parts = self.arrays[name], index.elts if isinstance(index, ast.Tuple) else [index]
                place = self._value(parts[0]).text
                for part, n in zip(parts[1:], held.shape[1:], strict=False):
                    place = f"({place}) * ({n}) + {self._value(part).text}"
                rest = held.shape[len(parts) :]
                if rest:  # a row
                    return Typed(ArrayType(held.entry, rest), f"({named(name)} + {' * '.join(f'({n})' for n in (place, *rest))})")
                return Typed(held.entry, f"{named(name)}[{place}]")
            case ast.Call(func=ast.Name(id=("load" | "reload")), args=[*_, array, i]):
                found = self._value(array)
                return Typed(found.type.entry, f"{found.text}[{self._value(i).text}]")
            case ast.Call(func=ast.Name(id=("block" | "row_block" | "part_of") as what), args=args):
                return self._view(what, args)
        return super()._value(node)


def _shared(total: str, lines: list[str]) -> list[str]:
    """Code that runs for e_ = 0, 1, ..., divided among the threads; it may change e_."""
    head = f"for (long long n_e_ = {total}, i_e_ = team.thread; i_e_ < n_e_; i_e_ += team.threads) {{"
    return [head, "    long long e_ = i_e_;", *(f"    {line}" for line in lines), "}"]


def _calls(node: ast.AST, *names: str) -> list[Any]:
    return [c for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id in names]


def _is_blocked(node: Any) -> bool:
    return isinstance(node.iter, ast.Call) and len(node.iter.args) == 3


def _is_work(node: Any) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "work_"


def _slot(node: Any) -> int:
    """The element q of work_[q] or part_[q]."""
    assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    slot: Any = node.slice.value
    return int(slot)
