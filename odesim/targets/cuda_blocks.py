"""The loop over one block of 1024 elements in C++, run by a warp: the loops of the block become one, with its sums.

for k: a[k] = f(k); for k: b[k] = g(a[k]); part_[0] = block_sum(b)
->  for k: a_ = f(k); b_ = g(a_); sum += b_; a[k] = a_; b[k] = b_

Memory is slow to answer, so that many numbers are asked for at once: a short body is done for four elements together, whose results are
stored when all of them are known. The order of every sum is that of odesim.runtime.sums: lane l adds elements l, l + 32, ...
"""

import ast
from dataclasses import dataclass
from typing import Any

from odesim.base.errors import CodegenError
from odesim.targets.cuda_text import FunctionText, ModuleScope, Translation
from odesim.targets.cuda_words import INT, Typed, named

AT_ONCE = 4  # elements; the numbers of more take too many registers (128 are there for a thread)
SHORT = 400  # characters of a body that is written for so many elements: longer ones wait less for memory, and NVRTC takes as many times
UNROLL = '_Pragma("unroll")'
FOLDS = {"block_sum": "sum", "block_dot": "sum", "block_max": "max"}


@dataclass(frozen=True)
class ArrayType:
    """The type of an array: that of its elements, and its lengths in C++."""

    entry: str
    shape: tuple[str, ...]


class Blocks(FunctionText):
    """What arrays and loops over blocks add to the language of a translated function.

    arrays, numbers: types of names. late: stages that are added to the state without a rounding between.
    """

    def __init__(
        self,
        translation: Translation,
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
        self.bases: dict[str, str] = {}  # views of arrays: where they begin
        self.element = ""  # the index of the loop over a block that is being written
        self.stored: dict[str, Typed] = {}  # where an array begins: what that loop stores at its index
        self.read: set[str] = set()  # arrays that it reads from memory

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
                    self.scratch[name] = slot_of(work)
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id="part_"), slice=ast.Tuple(elts=[ast.Constant() as place, _]))],
                    value=ast.Call(func=ast.Name(id=what), args=args),
                ):
                    folds.append((repr(place.value), what, args))
                case ast.For() | ast.Expr(value=ast.Call(func=ast.Name(id="combine_block"))):
                    loops.append(s)
                case _:
                    lines += self._statement(s)
        key = {place: f"s{slot_of(args[0])}" if is_work(args[0]) else f"p{place}" for place, _, args in folds}
        self.maxima = {key[place] for place, op, _ in folds if FOLDS[op] == "max"}
        for k in dict.fromkeys(key.values()):
            lines.append(f"double acc{k}_ = {'-ODESIM_INF' if k in self.maxima else '0.0'}, u{k}_ = 0.0, w{k}_ = 0.0;")
        one = self._element(loops, folds, key, 1)
        lines.append("long long i_ = team.lane;")
        # four elements at once hide the latency of memory; long bodies are bound by arithmetic, and NVRTC takes four times as long for them
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
        self.stored, self.read = {}, set()
        first, compute, store = list[str](), list[str](), list[str]()
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
                                result = self._value(value)
                                if array in self.scratch:
                                    key_of = f"s{self.scratch[array]}"
                                    first.append(f"double f{key_of}_[{count}];")
                                    compute.append(f"f{key_of}_[u_] = {result.text};")
                                    store.append(self._summand(key_of, f"f{key_of}_[u_]"))
                                else:
                                    name = keep(self._base(named(array)), self.arrays[array].entry)
                                    compute.append(f"{name}[u_] = {result.text};")
                            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array))], value=value):
                                result = self._value(value)
                                name = keep(self._base(named(array)), self.arrays[array].entry)
                                compute.append(f"{name}[u_] = {result.text};")
                            case _:
                                compute += self._statement(inner)
                    self.element = ""
        for place, op, args in folds:
            if is_work(args[0]):
                continue
            key_of = key[place]
            parts = [self._read(self._value(a)) for a in (args[:2] if op == "block_dot" else args[:1])]
            first.append(f"double f{key_of}_[{count}];")
            compute.append(f"f{key_of}_[u_] = {' * '.join(p.text for p in parts)};")
            store.append(self._summand(key_of, f"f{key_of}_[u_]"))
        # lanes of other warps may be ahead or behind: an element of another index may or may not be stored yet, so no such text is written
        if not set(map(self._root, self.stored)).isdisjoint(map(self._root, self.read)):
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

    def _summand(self, key: str, value: str) -> str:
        """Code that adds a summand to a lane's sum, and keeps those of the first 64 elements: without more they count in sequence."""
        added = f"odesim_larger(acc{key}_, {value})" if key in self.maxima else f"acc{key}_ + {value}"
        return f"if (j_ < 32) u{key}_ = {value}; else if (j_ < 64) w{key}_ = {value};  acc{key}_ = {added};"

    def _read(self, array: Typed) -> Typed:
        """The element of a block at the index of its loop, which a loop before may just have computed."""
        return self.stored.get(self._base(array.text)) or self._load(array, "j_")

    def _load(self, array: Typed, place: str) -> Typed:
        """The element of an array in memory at a place."""
        self.read.add(array.text)
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

    def _view(self, what: str, args: list[ast.expr]) -> Typed:
        base = self._value(args[0])
        self.read.add(base.text)
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
                    self.read.add(named(name))
                    return Typed(ArrayType(held.entry, rest), f"({named(name)} + {' * '.join(f'({n})' for n in (place, *rest))})")
                return self._load(Typed(held, named(name)), place)
            case ast.Call(func=ast.Name(id=("load" | "reload")), args=[*_, array, i]):
                whole, at = self._value(array), self._value(i).text
                return self._read(whole) if at == self.element else self._load(whole, at)
            case ast.Call(func=ast.Name(id=("block" | "row_block" | "part_of") as what), args=args):
                return self._view(what, args)
        return super()._value(node)


def is_work(node: Any) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "work_"


def slot_of(node: Any) -> int:
    """The element q of work_[q] or part_[q]."""
    assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    slot: Any = node.slice.value
    return int(slot)
