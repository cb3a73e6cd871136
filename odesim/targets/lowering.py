"""One function of restricted Python as one function of LLVM: statements and expressions, with kinds found on the way.

A variable has room in the frame for each kind that it takes; LLVM makes registers of that. Where two ways meet, a variable that has two
kinds takes the wider one. A loop is written for the kinds that its variables have before it, and once more if its body widens one.
"""

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from odesim.base.errors import CodegenError
from odesim.runtime.functions import Function, Intrinsic
from odesim.runtime.kinds import I1, I64, VOID, Kind, Pointer, Vector, counted
from odesim.targets.arithmetic import (
    FUNCTIONS,
    NONE,
    Known,
    Value,
    binary,
    cast,
    compared,
    constant,
    flat,
    gathered,
    pack,
    truth,
    types_of,
    unary,
    unified,
    unpack,
)

Scope = dict[str, Kind]
Test = Callable[[Any, Any], set[Any]]  # branches to one block or to the other; returns which of them may be reached
Way = tuple[Any, Scope]  # a block that does not end yet, and the kinds of variables there


@dataclass
class Loop:
    """The ways that leave a pass of a loop, and those that leave the loop."""

    passes: list[Way]
    ends: list[Way]


class Lowering:
    """The writer of one function for some kinds of arguments.

    tree: of the function. call(function, values): writes a call of another one.
    """

    def __init__(self, function: Function, tree: ast.FunctionDef, llvm: Any, kinds: Sequence[Kind], call: Callable[..., Value]) -> None:
        self.llvm, self.call, self.python = llvm, call, function.py_func
        code = self.python.__code__
        self.locals = frozenset((*code.co_varnames, *code.co_cellvars))
        cells = zip(code.co_freevars, self.python.__closure__ or (), strict=True)
        self.names = {**vars(builtins), **self.python.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.slots: dict[tuple[str, Kind], list[Any]] = {}
        self.scope: Scope = {}
        self.known: dict[str, Value] = {}  # the values of variables in this block
        self.loops: list[Loop] = []
        self.results: list[tuple[Any, Value]] = []
        self.entry = llvm.append_basic_block("entry")
        first = llvm.append_basic_block("first")
        self.builder = ir.IRBuilder(first)
        leaves = iter(llvm.args)
        for name, kind in zip([a.arg for a in tree.args.args], kinds, strict=True):
            self.bind(name, Value(kind, gathered(kind, leaves)))
        self.open = True  # whether the block may be reached
        self.suite(tree.body)
        if self.open:
            self.results.append((self.builder.block, NONE))
        ir.IRBuilder(self.entry).branch(first)
        self.result = self.finish()

    def finish(self) -> Kind:
        """The kind of the result, once every return is written."""
        kind = self.results[0][1].kind
        for _, value in self.results[1:]:
            kind = unified(kind, value.kind)
        types = types_of(kind)
        whole = types[0] if len(types) == 1 else ir.LiteralStructType(types) if types else ir.VoidType()
        for block, value in self.results:
            self.builder.position_at_end(block)
            leaves = flat(kind, cast(self.builder, value, kind).parts)
            if not leaves:
                self.builder.ret_void()
                continue
            result = leaves[0] if len(leaves) == 1 else ir.Constant(whole, ir.Undefined)
            for i, leaf in enumerate(leaves if len(leaves) > 1 else ()):
                result = self.builder.insert_value(result, leaf, i)
            self.builder.ret(result)
        self.llvm.ftype = ir.FunctionType(whole, self.llvm.ftype.args)
        self.llvm.type = self.llvm.ftype.as_pointer()
        self.llvm.return_value.type = whole
        return kind

    # variables and blocks

    def bind(self, name: str, value: Value) -> None:
        """Gives a variable a value."""
        kind = value.kind
        self.scope[name], self.known[name] = kind, value
        for slot, leaf in zip(self.room(name, kind), flat(kind, value.parts), strict=True):
            self.builder.store(leaf, slot)

    def room(self, name: str, kind: Kind) -> list[Any]:
        """The places of a variable of this kind in the frame."""
        key = name, kind
        if key not in self.slots:
            entry = ir.IRBuilder(self.entry)
            self.slots[key] = [entry.alloca(t, name=name) for t in types_of(kind)]
        return self.slots[key]

    def variable(self, name: str) -> Value:
        """The value of a variable."""
        if name not in self.known:
            if name not in self.scope:
                raise CodegenError(f"{name} may have no value in {self.python.__name__}")
            kind = self.scope[name]
            self.known[name] = Value(kind, gathered(kind, map(self.builder.load, self.room(name, kind))))
        return self.known[name]

    def block(self) -> Any:
        """A new block."""
        return self.llvm.append_basic_block("b")

    def go(self, block: Any, scope: Scope) -> None:
        """Goes on in a block with these kinds of variables."""
        self.builder.position_at_end(block)
        self.scope, self.known, self.open = dict(scope), {}, True

    def meet(self, ways: Sequence[Way], more: Scope | None = None) -> None:
        """Goes on where several ways meet, in a new block. more: variables that have a value on the way."""
        if not ways:
            self.open = False
            return
        if len(ways) == 1:
            self.go(*ways[0])
            self.scope = {**(more or {}), **self.scope}
            return
        scope: Scope = dict(more or {}) | ways[0][1]
        for _, other in ways[1:]:
            for name, kind in other.items():
                scope[name] = kind if name not in scope else kind if scope[name] == kind else self.wider(scope[name], kind)
        block = self.block()
        for end, kinds in ways:
            self.enter(end, kinds, block, scope)
        self.go(block, {name: kind for name, kind in scope.items() if kind is not None})

    def wider(self, a: Kind, b: Kind) -> Kind:
        """The kind of a variable where ways meet on which it has these; None where it can have none, and nobody may read it."""
        try:
            return None if a is None or b is None else unified(a, b)
        except CodegenError:
            return None

    def enter(self, end: Any, kinds: Scope, block: Any, scope: Scope) -> None:
        """Ends a block by a jump to where variables have the kinds of this scope."""
        self.builder.position_at_end(end)
        for name, kind in kinds.items():
            wide = scope.get(name)
            if wide is not None and wide != kind:
                value = Value(kind, gathered(kind, map(self.builder.load, self.room(name, kind))))
                wider = cast(self.builder, value, wide)
                for slot, leaf in zip(self.room(name, wide), flat(wide, wider.parts), strict=True):
                    self.builder.store(leaf, slot)
        self.builder.branch(block)

    # statements

    def suite(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if not self.open:
                return
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise CodegenError(f"{self.python.__name__} has a statement {type(statement).__name__}")
            method(statement)

    def do_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):
            self.value(s.value)

    def do_Pass(self, s: ast.Pass) -> None:
        """Nothing."""

    def do_Return(self, s: ast.Return) -> None:
        value = NONE if s.value is None else self.value(s.value)  # which may end in another block
        self.results.append((self.builder.block, value))
        self.open = False

    def do_Assign(self, s: ast.Assign) -> None:
        value = self.value(s.value)
        for target in s.targets:
            self.assign(target, value)

    def do_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.value(s.value))

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name):
            old = self.variable(s.target.id)
            self.bind(s.target.id, binary(self.builder, type(s.op), old, self.value(s.value)))
            return
        assert isinstance(s.target, ast.Subscript)
        place, dtype = self.place(s.target)
        old = Value(dtype, self.builder.load(place))
        self.builder.store(cast(self.builder, binary(self.builder, type(s.op), old, self.value(s.value)), dtype).parts, place)

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Tuple):
            parts = unpack(value)
            if len(parts) != len(target.elts):
                raise CodegenError("a tuple has another length than its names")
            for part, one in zip(target.elts, parts, strict=True):
                self.assign(part, one)
        elif isinstance(target, ast.Subscript):
            self.fill(target, value)
        else:
            raise CodegenError(f"{type(target).__name__} is assigned to")

    def fill(self, target: ast.Subscript, value: Value) -> None:
        """a[i] = value, or a[...] = value."""
        if not isinstance(target.slice, ast.Constant) or target.slice.value is not Ellipsis:
            place, dtype = self.place(target)
            self.builder.store(cast(self.builder, value, dtype).parts, place)
            return
        whole = self.value(target.value)
        number = cast(self.builder, value, whole.kind.dtype).parts
        with counted(self.builder, self.size(whole).parts) as i:
            self.builder.store(number, self.builder.gep(whole.parts[0], [i]))

    def size(self, array: Value) -> Value:
        """The number of elements of an array."""
        lengths = [Value(I64, length) for length in array.parts[1]]
        return reduce(partial(binary, self.builder, ast.Mult), lengths)

    def do_If(self, s: ast.If) -> None:
        yes, no = self.block(), self.block()
        reached = self.branch(s.test, yes, no)
        before, ways = self.scope, []
        for block, body in ((yes, s.body), (no, s.orelse)):
            if block in reached:
                self.go(block, before)
                self.suite(body)
                if self.open:
                    ways.append((self.builder.block, self.scope))
        self.drop(block for block in (yes, no) if block not in reached)
        self.meet(ways)

    def drop(self, blocks: Any) -> None:
        """Removes blocks that nothing leads to."""
        for block in blocks:
            self.llvm.blocks.remove(block)

    def do_While(self, s: ast.While) -> None:
        if s.orelse:
            raise CodegenError("a loop has an else")
        self.loop(partial(self.branch, s.test), s.body, lambda: None)

    def do_For(self, s: ast.For) -> None:
        call = s.iter
        if s.orelse or not isinstance(call, ast.Call) or self.value(call.func).kind != Known(range):
            raise CodegenError("a loop is over a range")
        range_values = [self.value(a) for a in call.args]
        if any(v.kind not in (I64, I1) for v in range_values):
            raise CodegenError("the bounds of a range are whole numbers")
        bounds = [cast(self.builder, v, I64) for v in range_values]
        start, stop = (constant(0), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2] if len(bounds) == 3 else constant(1)
        place = ir.IRBuilder(self.entry).alloca(I64)
        self.builder.store(start.parts, place)
        now: list[Any] = []

        def test(body: Any, end: Any) -> set[Any]:
            now[:] = [self.builder.load(place)]
            value = Value(I64, now[0])
            up, down = (compared(self.builder, op, value, stop).parts for op in (ast.Lt, ast.Gt))
            rises = compared(self.builder, ast.Gt, step, constant(0))
            on = self.builder.select(rises.parts, up, down) if step.constant is None else up if step.constant > 0 else down
            self.builder.cbranch(on, body, end)
            return {body, end}

        def advance() -> None:
            self.builder.store(self.builder.add(self.builder.load(place), step.parts, flags=("nsw",)), place)

        self.loop(test, s.body, advance, lambda: self.assign(s.target, Value(I64, now[0])))

    def loop(self, test: Test, body: Sequence[ast.stmt], after: Callable[[], None], begin: Callable[[], None] | None = None) -> None:
        """A loop: test branches to the body or to the end, begin is done before the body, after behind it."""
        start, length, results = self.builder.block, len(self.builder.block.instructions), len(self.results)
        blocks, entered = len(self.llvm.blocks), dict(self.scope)
        assumed = dict(entered)
        while True:
            head, inside, end = self.block(), self.block(), self.block()
            self.enter(start, entered, head, assumed)
            self.go(head, assumed)
            reached = test(inside, end)
            loop = Loop([], [(end, assumed)] if end in reached else [])
            self.loops.append(loop)
            self.go(inside, assumed)
            if begin is not None:
                begin()
            self.suite(body)
            self.loops.pop()
            if self.open:
                loop.passes.append((self.builder.block, self.scope))
            self.meet(loop.passes)
            seen: Scope = {}
            if self.open:
                after()
                seen = self.scope
            both = {name: self.wider(kind, seen.get(name, kind)) for name, kind in assumed.items()}
            wide = {name: kind for name, kind in both.items() if kind is not None}
            if wide == assumed:
                break
            assumed = wide
            del self.llvm.blocks[blocks:], self.results[results:], start.instructions[length:]
            start.terminator = None
        if self.open:
            self.enter(self.builder.block, seen, head, assumed)
        if end not in reached:
            self.drop([end])
        self.meet(loop.ends, more={name: kind for name, kind in seen.items() if name not in assumed})

    def do_Break(self, s: ast.Break) -> None:
        self.loops[-1].ends.append((self.builder.block, self.scope))
        self.open = False

    def do_Continue(self, s: ast.Continue) -> None:
        self.loops[-1].passes.append((self.builder.block, self.scope))
        self.open = False

    # conditions

    def branch(self, e: ast.expr, yes: Any, no: Any) -> set[Any]:
        """Ends the block by a jump to yes or no; returns which of them may be reached."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            return self.branch(e.operand, no, yes)
        if isinstance(e, ast.BoolOp):
            both = isinstance(e.op, ast.And)
            reached: set[Any] = set()
            for part in e.values[:-1]:
                following = self.block()
                statements = self.branch(part, *((following, no) if both else (yes, following)))
                reached |= statements - {following}
                if following not in statements:
                    self.drop([following])
                    return reached
                self.builder.position_at_end(following)
            return reached | self.branch(e.values[-1], yes, no)
        if isinstance(e, ast.Compare) and len(e.ops) > 1:
            left, reached = self.value(e.left), set()
            for op, right in zip(e.ops, e.comparators, strict=True):
                value = self.value(right)
                following = yes if right is e.comparators[-1] else self.block()
                self.builder.cbranch(compared(self.builder, type(op), left, value).parts, following, no)
                self.builder.position_at_end(following)
                left = value
            return {yes, no}
        test = truth(self.builder, self.value(e))
        if test.constant is not None:
            chosen = yes if test.constant else no
            self.builder.branch(chosen)
            return {chosen}
        self.builder.cbranch(test.parts, yes, no)
        return {yes, no}

    # expressions

    def value(self, e: ast.expr) -> Value:
        method = getattr(self, f"value_{type(e).__name__}", None)
        if method is None:
            raise CodegenError(f"{self.python.__name__} has an expression {type(e).__name__}")
        return method(e)

    def value_Constant(self, e: ast.Constant) -> Value:
        return constant(e.value)

    def value_Name(self, e: ast.Name) -> Value:
        if e.id in self.locals:
            return self.variable(e.id)
        if e.id not in self.names:
            raise CodegenError(f"{self.python.__name__} reads {e.id}, which there is not")
        return constant(self.names[e.id])

    def value_Attribute(self, e: ast.Attribute) -> Value:
        whole = self.value(e.value)
        if isinstance(whole.kind, Known) and hasattr(whole.kind.thing, e.attr):
            return constant(getattr(whole.kind.thing, e.attr))
        if isinstance(whole.kind, Vector) and e.attr in ("size", "shape"):
            return self.size(whole) if e.attr == "size" else pack([Value(I64, length) for length in whole.parts[1]])
        raise CodegenError(f"{self.python.__name__} reads an attribute {e.attr}")

    def value_Tuple(self, e: ast.Tuple) -> Value:
        return pack([self.value(part) for part in e.elts])

    def value_UnaryOp(self, e: ast.UnaryOp) -> Value:
        return unary(self.builder, type(e.op), self.value(e.operand))

    def value_BinOp(self, e: ast.BinOp) -> Value:
        left = self.value(e.left)
        return binary(self.builder, type(e.op), left, self.value(e.right))

    def value_Compare(self, e: ast.Compare) -> Value:
        if len(e.ops) > 1:
            return self.logical(e)
        left = self.value(e.left)
        return compared(self.builder, type(e.ops[0]), left, self.value(e.comparators[0]))

    def value_BoolOp(self, e: ast.BoolOp) -> Value:
        return self.logical(e)

    def logical(self, e: ast.expr) -> Value:
        """Whether a condition holds, found by branches as Python does."""
        return self.value_IfExp(ast.IfExp(e, ast.Constant(True), ast.Constant(False)))

    def value_IfExp(self, e: ast.IfExp) -> Value:
        yes, no, known = self.block(), self.block(), dict(self.known)
        reached = self.branch(e.test, yes, no)
        self.drop(block for block in (yes, no) if block not in reached)
        ways: list[tuple[Any, Value]] = []
        for block, part in ((yes, e.body), (no, e.orelse)):
            if block in reached:
                self.builder.position_at_end(block)
                self.known = dict(known)
                value = self.value(part)
                ways.append((self.builder.block, value))
        self.known = known
        if len(ways) == 1:
            return ways[0][1]
        kind, end = unified(ways[0][1].kind, ways[1][1].kind), self.block()
        places = [ir.IRBuilder(self.entry).alloca(t) for t in types_of(kind)]
        for block, value in ways:
            self.builder.position_at_end(block)
            for place, leaf in zip(places, flat(kind, cast(self.builder, value, kind).parts), strict=True):
                self.builder.store(leaf, place)
            self.builder.branch(end)
        self.builder.position_at_end(end)
        return Value(kind, gathered(kind, map(self.builder.load, places)))

    def value_Subscript(self, e: ast.Subscript) -> Value:
        whole = self.value(e.value)
        if isinstance(whole.kind, tuple):
            at = self.value(e.slice).constant
            if at is None:
                raise CodegenError("the place in a tuple is known")
            return unpack(whole)[at]
        place, kind = self.place(e, whole)
        if isinstance(kind, Vector):  # the place is the first of a row
            return Value(kind, (place, whole.parts[1][-kind.rank :]))
        return Value(kind, self.builder.load(place))

    def place(self, e: ast.Subscript, whole: Value | None = None) -> tuple[Any, Kind]:
        """The address of an element or a part of an array, or of a number behind a pointer, and its kind."""
        whole = whole or self.value(e.value)
        index = self.value(e.slice)
        indices = unpack(index) if isinstance(index.kind, tuple) else [index]
        if any(i.kind not in (I64, I1) for i in indices):
            raise CodegenError("an index is a whole number")
        kind = whole.kind
        if isinstance(kind, Pointer) and len(indices) == 1:
            data = whole.parts
        elif isinstance(kind, Vector) and len(indices) <= kind.rank:
            data = whole.parts[0]
        else:
            raise CodegenError("an index is for an array")
        at, rank = cast(self.builder, indices[0], I64), kind.rank if isinstance(kind, Vector) else 1
        for i in range(1, rank):
            at = binary(self.builder, ast.Mult, at, Value(I64, whole.parts[1][i]))
            at = binary(self.builder, ast.Add, at, indices[i]) if i < len(indices) else at
        left = rank - len(indices)
        return self.builder.gep(data, [at.parts]), Vector(kind.dtype, left) if left else kind.dtype

    def value_Call(self, e: ast.Call) -> Value:
        function = self.value(e.func)
        if not isinstance(function.kind, Known) or e.keywords:
            raise CodegenError("a call is of a function that is known")
        thing, values = function.kind.thing, [self.value(a) for a in e.args]
        if isinstance(thing, Function):
            return self.call(self.builder, thing, values)
        if isinstance(thing, Intrinsic):
            result, kinds, emit = thing.rule(*(v.kind for v in values))
            parts = emit(self.builder, *(cast(self.builder, v, k).parts for v, k in zip(values, kinds, strict=True)))
            return Value(result, parts) if result != VOID else NONE
        if thing in FUNCTIONS:
            return FUNCTIONS[thing](self.builder, *values)
        raise CodegenError(f"{self.python.__name__} calls {getattr(thing, '__name__', thing)}")
