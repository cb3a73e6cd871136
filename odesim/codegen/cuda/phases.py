"""Translates a generated kernel of one large system into C++ whose loops are divided among many threads.

for n in range(K): for b in range(S): r[n, b] = ...       each thread takes elements
part_[0, lo_ // 1024] = block_sum(work_[0], hi_ - lo_)    each warp takes blocks of 1024: lane l adds elements l, l + 32, ...
r0 = tree_sum(part_[0], w)                                the threads of a block add halves

Between two loops all threads wait for each other. However many threads there are, the order of every sum is that of
odesim.runtime.sums. Additions onto gathered places are made by one thread a place, in the kernel's order.

Memory is slow to answer, so that many numbers are asked for at once: the loops of a block are one loop, and a short body is done for four
elements together, whose results are stored when all of them are known.
"""

import ast
import itertools
import re
from dataclasses import dataclass
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse
from odesim.targets.cuda_text import Functions, FunctionText, ModuleScope
from odesim.targets.cuda_words import INT, REAL, Typed, named

WAIT = "odesim_wait(team);"
AT_ONCE = 4  # elements; the numbers of more take too many registers (128 are there for a thread)
SHORT = 400  # characters of a body that is written for so many elements: longer ones wait less for memory, and NVRTC takes as many times
UNROLL = '_Pragma("unroll")'
FOLDS = {"block_sum": "sum", "block_dot": "sum", "block_max": "max"}
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
        self.maxima: set[str] = set()
        self.sums = 0
        self.bases: dict[str, str] = {}  # views of arrays: where they begin
        self.element = ""  # the index of the loop over a block that is being written
        self.stored: dict[str, Typed] = {}  # where an array begins: what that loop stores at its index

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
        lines: list[str] = []
        body = list(self.node.body)
        while body:
            numbers = list(itertools.takewhile(_is_number, body))
            if numbers:
                lines += self._numbers(numbers)
                body = body[len(numbers) :]
                after = next((node for node in body if not _is_scalar(node)), None)
                if isinstance(after, ast.For) and not _calls(after, *FOLDS):
                    lines.pop()  # all threads have read the sums when they come to the wait after that loop, which writes none
            else:
                lines += self._phase(body.pop(0))
        return lines[:-1] if lines and lines[-1] == WAIT else lines  # the order is done when each block is

    def _phase(self, node: Any) -> list[str]:
        match node:
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
                from odesim.runtime.matrices import invert_one  # imports numba

                (entry, copied), (_, result), (_, kept), length = (*map(self._vector, (a, x, matrix)), self._value(n).text)
                made = self.translation.imported(invert_one, (f"{entry}*", f"{entry}*", f"{entry}*", INT, INT))
                call = f"{made.name}({copied}, {result}, {kept}, e_ * ({length}) * ({length}), {length});"
                return [*_shared(self._value(count).text, [call]), WAIT]
        return self._statement(node)

    def _numbers(self, nodes: list[Any]) -> list[str]:
        """Sums over all blocks, each one number: those of neighbouring slots together, a row each."""
        out: list[str] = []
        for _, group in itertools.groupby(
            enumerate(nodes), lambda p: (p[1].value.func.id, ast.dump(p[1].value.args[1]), _slot(p[1].value.args[0]) - p[0])
        ):
            sums = [node for _, node in group]
            call = sums[0].value
            count, first = self._value(call.args[1]).text, _slot(call.args[0])
            self.sums += len(sums)
            if self.sums > SUMS:
                raise CodegenError(f"the right-hand side has more than {SUMS} sums that are one number")
            out.append(f"odesim_{call.func.id}(team, part_ + {first} * {count}, {count}, {len(sums)});")
            for k, node in enumerate(sums):
                self._learn(node.targets[0].id, REAL)
                out.append(f"{named(node.targets[0].id)} = (part_ + {first + k} * {count})[0];")
        return [*out, WAIT]

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
        total = self._total(shared)
        if not inside and len(body) == 1 and isinstance(body[0], ast.Assign) and isinstance(body[0].targets[0], ast.Subscript):
            several = self._several(shared, before, body[0])
            if several:
                return [*several, WAIT]
        lines = [f"for ({i} = 0; {i} < {n}; {i} += 1) {{" for i, n in inside]
        lines += [*self._block(before), *self._block(body), *("}" for _ in inside)]
        return [*_shared(total, [*self._indices(shared), *lines]), WAIT]

    def _several(self, loops: Loops, before: list[ast.stmt], node: ast.Assign) -> list[str]:
        """A short assignment to each element, for several elements at once; nothing for a longer one."""
        first = [*self._indices(loops), *self._block(before)]
        value, place = self._value(node.value), self._value(node.targets[0])
        if len(value.text) > SHORT or "elementary_" in "".join([*first, value.text]):
            return []
        lines = ["long long e_ = i_e_ + u_ * team.threads;", *first, f"place_[u_] = &{place.text};", f"value_[u_] = {value.text};"]
        entry = place.type
        return [
            "{",
            f"    const long long n_e_ = {self._total(loops)};",
            "    long long i_e_ = team.thread;",
            f"    for (; i_e_ + {AT_ONCE - 1} * team.threads < n_e_; i_e_ += {AT_ONCE} * team.threads) {{",
            f"        {entry} value_[{AT_ONCE}], *place_[{AT_ONCE}];",
            f"        {UNROLL} for (int u_ = 0; u_ < {AT_ONCE}; ++u_) {{",
            *(f"            {line}" for line in lines),
            "        }",
            f"        {UNROLL} for (int u_ = 0; u_ < {AT_ONCE}; ++u_) *place_[u_] = value_[u_];",
            "    }",
            "    for (; i_e_ < n_e_; i_e_ += team.threads) {",
            "        long long e_ = i_e_;",
            *(f"        {line}" for line in [*first, f"{place.text} = {value.text};"]),
            "    }",
            "}",
        ]

    def _rows(self, loops: Loops, before: list[ast.stmt], blocked: Any, after: list[ast.stmt]) -> list[str]:
        """The blocks of all rows, one warp each; then the sums of the rows."""
        assert isinstance(blocked.iter, ast.Call)
        length, rows = self._value(blocked.iter.args[1]).text, self._total(loops)
        self._learn("lo_", INT)
        where = ["const long long row_ = e_ / width_, b_ = e_ % width_;", "e_ = row_;", *self._indices(loops), "lo_ = b_ * 1024;"]
        lines = [*where, *self._block(before), *self._blocked(blocked.body)]
        head = f"const long long height_ = {rows}, width_ = ({length} + 1023) / 1024;"
        loop = ["for (long long g_ = team.warp; g_ < height_ * width_; g_ += team.warps) {", "    long long e_ = g_;"]
        out = ["{", f"    {head}", *(f"    {line}" for line in [*loop, *(f"    {line}" for line in lines), "}"]), f"    {WAIT}"]
        for s in after:
            assert isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name)
            out.append(f"    odesim_{s.value.func.id}(team, part_, width_, height_);")
            put = f"{self._value(s.targets[0]).text} = part_[e_ * width_];"
            out += [
                f"    {line}" for line in [*_shared("height_", ["const long long f_ = e_;", *self._indices(loops), "e_ = f_;", put]), WAIT]
            ]
        return [*out, "}"]

    def _blocked(self, body: list[Any]) -> list[str]:
        """The loops over the elements of a block as one loop, and the sums of the block.

        for k: a[k] = f(k); for k: b[k] = g(a[k]); part_[0] = block_sum(b)
        ->  for k: a_ = f(k); b_ = g(a_); sum += b_; a[k] = a_; b[k] = b_

        Each loop reads of what another has stored the element of its own index alone: other elements may be another warp's.
        """
        loops, folds, lines = list[Any](), list[tuple[str, str, list[Any]]](), list[str]()
        for s in body:
            match s:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id="work_")) as work):
                    self.scratch[name] = _slot(work)
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id="part_"), slice=ast.Tuple(elts=[ast.Constant() as place, _]))],
                    value=ast.Call(func=ast.Name(id=what), args=args),
                ):
                    folds.append((repr(place.value), what, args))
                case ast.For() | ast.Expr(value=ast.Call(func=ast.Name(id="combine_block"))):
                    loops.append(s)
                case _:
                    lines += self._statement(s)
        key = {place: f"s{_slot(args[0])}" if _is_work(args[0]) else f"p{place}" for place, _, args in folds}
        self.maxima = {key[place] for place, op, _ in folds if FOLDS[op] == "max"}
        for k in dict.fromkeys(key.values()):
            lines.append(f"double acc{k}_ = {'-ODESIM_INF' if k in self.maxima else '0.0'}, u{k}_ = 0.0, w{k}_ = 0.0;")
        one = self._element(loops, folds, key, 1)
        lines.append("long long i_ = team.lane;")
        if sum(map(len, one)) < SHORT * 3:
            lines += [f"for (; i_ + {32 * (AT_ONCE - 1)} < hi_ - lo_; i_ += {32 * AT_ONCE}) {{"]
            lines += [*(f"    {line}" for line in self._element(loops, folds, key, AT_ONCE)), "}"]
        lines += ["for (; i_ < hi_ - lo_; i_ += 32) {", *(f"    {line}" for line in one), "}"]
        for slot, op, _ in folds:
            fold = f"odesim_fold_{FOLDS[op]}(acc{key[slot]}_, u{key[slot]}_, w{key[slot]}_, hi_ - lo_)"
            lines.append(f"odesim_keep(team, part_ + ({slot} * height_ + row_) * width_ + b_, {fold});")
        return lines

    def _element(self, loops: list[Any], folds: list[Any], key: dict[str, str], count: int) -> list[str]:
        """The body of a block's loop for `count` elements, i_ the first of them."""
        self.stored, first, compute, store = {}, list[str](), list[str](), list[str]()
        each = [f"{UNROLL} for (int u_ = 0; u_ < {count}; ++u_) {{"]

        def keep(base: str, entry: str, guard: str = "") -> str:
            """The name of what is stored at the index into the array that begins there."""
            name = f"v{len(self.stored)}_"
            first.append(f"{entry} {name}[{count}];")
            store.append(f"{guard}{base}[j_] = {name}[u_];")
            self.stored[base] = Typed(entry, f"{name}[u_]")
            return name

        for s in loops:
            match s:
                case ast.Expr(value=ast.Call(args=[x, k, places, coef, ns, _, _, out])):
                    target = self._value(out)
                    stages = ", ".join(self._value(a).text for a in (x, k, places, coef, ns))
                    # no later loop reads the state, and the integrator asks for it where it names a place
                    name = keep(self._base(target.text), target.type.entry, "if (z0_) " if self.late else "")
                    first.append(f"odesim_combine<{self.late}, {count}>({stages}, n_, lo_ + i_, 32, {name});")
                case ast.For(target=ast.Name(id=i), body=body):
                    self.types[i] = INT
                    compute.append(f"{named(i)} = j_;")
                    self.element = named(i)
                    for inner in body:
                        match inner:
                            case ast.Expr(value=ast.Call(func=ast.Name(id="store"), args=[_, _, ast.Name(id=array), _, value])):
                                found = self._value(value)
                                if array in self.scratch:
                                    key_of = f"s{self.scratch[array]}"
                                    first.append(f"double f{key_of}_[{count}];")
                                    compute.append(f"f{key_of}_[u_] = {found.text};")
                                    store.append(self._summand(key_of, f"f{key_of}_[u_]"))
                                else:
                                    name = keep(self._base(named(array)), self.arrays[array].entry)
                                    compute.append(f"{name}[u_] = {found.text};")
                            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array))], value=value):
                                found = self._value(value)
                                name = keep(self._base(named(array)), self.arrays[array].entry)
                                compute.append(f"{name}[u_] = {found.text};")
                            case _:
                                compute += self._statement(inner)
                    self.element = ""
        for place, op, args in folds:
            if _is_work(args[0]):
                continue
            key_of = key[place]
            parts = [self._read(self._value(a)) for a in (args[:2] if op == "block_dot" else args[:1])]
            first.append(f"double f{key_of}_[{count}];")
            compute.append(f"f{key_of}_[u_] = {' * '.join(p.text for p in parts)};")
            store.append(self._summand(key_of, f"f{key_of}_[u_]"))
        roots = set(map(self._root, self.stored))
        if any(self._root(word) in roots for line in compute for word in re.findall(r"[A-Za-z_]\w*", line)):
            raise CodegenError(f"no C++ form of a block that reads other elements of what it stores: {ast.unparse(loops[-1])[:60]}")
        self.stored = {}
        index = "const long long j_ = i_ + 32 * u_;"
        return [
            *first,
            *each,
            f"    {index}",
            *(f"    {c}" for c in compute),
            "}",
            *each,
            f"    {index}",
            *(f"    {c}" for c in store),
            "}",
        ]

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

    def _read(self, array: Typed) -> Typed:
        """The element of a block at the index of its loop, which a loop before may just have computed."""
        held = self.stored.get(self._base(array.text))
        return held or Typed(array.type.entry, f"{array.text}[j_]")

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
        """Partial sums in the order of odesim.runtime.sums, each line along the axis by one thread."""
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
        inner = [f"{named(i)} = odesim_split(e_, {self._value(n).text});" for i, n in reversed(loops[1:])]
        return [*inner, f"{named(loops[0][0])} = e_;"] if loops else []

    # -- what arrays add to the language

    def _statement(self, node: Any) -> list[str]:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=("block" | "row_block" | "part_of") as what), args=args)
            ):
                view = self._view(what, args)
                self.arrays[name] = view.type
                self._learn(name, f"{view.type.entry}*")
                self.bases[named(name)] = view.text
                return [f"{named(name)} = {view.text};"]
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in self.arrays:
                self.arrays[name] = self.arrays[other]
                self._learn(name, f"{self.arrays[other].entry}*")
                self.bases[named(name)] = named(other)
                return [f"{named(name)} = {named(other)};"]
        return super()._statement(node)

    def _summand(self, key: str, value: str) -> str:
        """Code that adds a summand to a lane's sum, and keeps those of the first 64 elements: without more they count in sequence."""
        added = f"odesim_larger(acc{key}_, {value})" if key in self.maxima else f"acc{key}_ + {value}"
        return f"if (j_ < 32) u{key}_ = {value}; else if (j_ < 64) w{key}_ = {value};  acc{key}_ = {added};"

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
                if place == self.element and not rest:
                    return self._read(Typed(held, named(name)))
                if rest:  # a row
                    return Typed(ArrayType(held.entry, rest), f"({named(name)} + {' * '.join(f'({n})' for n in (place, *rest))})")
                return Typed(held.entry, f"{named(name)}[{place}]")
            case ast.Call(func=ast.Name(id=("load" | "reload")), args=[*_, array, i]):
                found, at = self._value(array), self._value(i).text
                return self._read(found) if at == self.element else Typed(found.type.entry, f"{found.text}[{at}]")
            case ast.Call(func=ast.Name(id=("block" | "row_block" | "part_of") as what), args=args):
                return self._view(what, args)
        return super()._value(node)


def _shared(total: str, lines: list[str]) -> list[str]:
    """Code that runs for e_ = 0, 1, ..., divided among the threads; it may change e_."""
    head = f"for (long long n_e_ = {total}, i_e_ = team.thread; i_e_ < n_e_; i_e_ += team.threads) {{"
    return [head, "    long long e_ = i_e_;", *(f"    {line}" for line in lines), "}"]


def _is_scalar(node: Any) -> bool:
    """Whether a statement is name = a number that each thread computes."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple) and not _is_number(node)


def _is_number(node: Any) -> bool:
    """Whether a statement is name = tree_sum(...) or tree_max(...)."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Name(id="tree_sum" | "tree_max"))):
            return True
    return False


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
