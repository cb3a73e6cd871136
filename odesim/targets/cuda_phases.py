"""Translates a generated kernel of one large system into C++ whose loops are divided among many threads.

for n in range(K): for b in range(S): r[n, b] = ...       each thread takes elements
part_[0, lo_ // 1024] = block_sum(work_[0], hi_ - lo_)    each warp takes blocks of 1024: lane l adds elements l, l + 32, ...
r0 = tree_sum(part_[0], w)                                the threads of a block add halves

Between two loops all threads wait for each other. However many threads there are, the order of every sum is that of
odesim.runtime.sums. Additions onto gathered places are made by one thread a place, in the kernel's order.

The loop over one block is odesim.targets.cuda_blocks.
"""

import ast
import itertools
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse
from odesim.targets.cuda_blocks import AT_ONCE, FOLDS, SHORT, UNROLL, Blocks, slot_of
from odesim.targets.cuda_words import INT, REAL, named

WAIT = "odesim_wait(team);"
SUMS = 64
"""Sums that are one number, in one kernel."""
Loops = list[tuple[str, ast.expr]]


class Phases(Blocks):
    """The C++ body of a kernel, a phase after the other."""

    sums = 0  # that are one number, so far

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

                (entry, copied), (_, result), (_, original), length = (*map(self._vector, (a, x, matrix)), self._value(n).text)
                inverse = self.translation.imported(invert_one, (f"{entry}*", f"{entry}*", f"{entry}*", INT, INT))
                call = f"{inverse.name}({copied}, {result}, {original}, e_ * ({length}) * ({length}), {length});"
                return [*_shared(self._value(count).text, [call]), WAIT]
        return self._statement(node)

    def _numbers(self, nodes: list[Any]) -> list[str]:
        """Sums over all blocks, each one number: those of neighbouring slots together, a row each."""
        out: list[str] = []
        for _, group in itertools.groupby(
            enumerate(nodes), lambda p: (p[1].value.func.id, ast.dump(p[1].value.args[1]), slot_of(p[1].value.args[0]) - p[0])
        ):
            sums = [node for _, node in group]
            call = sums[0].value
            count, first = self._value(call.args[1]).text, slot_of(call.args[0])
            self.sums += len(sums)
            if self.sums > SUMS:
                raise CodegenError(f"the right-hand side has more than {SUMS} sums that are one number")
            out.append(f"odesim_{call.func.id}(team, part_ + {first} * {count}, {count}, {len(sums)});")
            for k, node in enumerate(sums):
                self._learn(node.targets[0].id, REAL)
                out.append(f"{named(node.targets[0].id)} = (part_ + {first + k} * {count})[0];")
        return [*out, WAIT]

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
        # no atomic additions: their order, and so the bits, would change from run to run
        lines = [f"for ({i} = 0; {i} < {n}; {i} += 1) {{" for i, n in inside]
        lines += [*self._block(before), *self._block(body), *("}" for _ in inside)]
        return [*_shared(total, [*self._indices(shared), *lines]), WAIT]

    def _several(self, loops: Loops, before: list[ast.stmt], node: ast.Assign) -> list[str]:
        """A short assignment to each element, for several elements at once; nothing for a longer one."""
        first = [*self._indices(loops), *self._block(before)]
        value, place = self._value(node.value), self._value(node.targets[0])
        # exponentials and the like are inlined and fill the registers by themselves
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
        arguments = ", ".join([*vectors, *self._whole(steps), *self._whole(shape), self._value(add).text])
        return [f"odesim_product<{entry}>(team, {arguments});"]

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
