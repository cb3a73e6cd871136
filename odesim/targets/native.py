"""C functions from generated text, cached on disk as machine code: a warm start imports llvmlite, not numba.

numba compiles a module without optimising each helper separately; all of it is then optimised once, in half the time.
"""

import gc
import hashlib
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from types import ModuleType
from typing import Any

from odesim.base.errors import CodegenError
from odesim.base.memo import ForkLock
from odesim.targets.cache import load_module, module_name, read_file, write_file

# functions of the C library that machine code may call; any other would belong to the run time of numba or Python
_SIMPLE = ("sqrt", "floor", "asin", "acos", "atan")
_LIBRARY = frozenset(("memset", "memcpy", "memmove", "fma", "ceil", "exp", "log", "pow", "tanh", "erf", "atan2", *_SIMPLE))
_LIBRARY |= {f"{name}f" for name in _SIMPLE}
# arrays at addresses do not own their memory: references are not counted, and no destructor is called
_NO_OWNER = "\n".join(
    f"define void @{name}(ptr %owner) alwaysinline {{\n  ret void\n}}" for name in ("NRT_incref", "NRT_decref", "NRT_MemInfo_call_dtor")
)
# without a lock, one of two threads that load the same code would drop its copy while the other still calls it
_LOADING = ForkLock()
SEPARATE = "separate_pass"
"""A part of the names of functions that are never inlined."""
_LETTERS = {"int64": "i64", "float64": "double", "none": "void", "void": "void"}
NAMES = ("add", "sub", "mul", "truediv", "neg", "lt", "le", "gt", "ge", "eq", "ne", "iadd", "isub", "imul", "getitem")
OPERATORS = frozenset(getattr(operator, name) for name in NAMES)


def load_native(text: str, stem: str, names: Sequence[str]) -> dict[str, int]:
    """{name: address} of these functions of the module with this text; the addresses are valid until the process ends.

    Each function is an njit function with one explicit signature, or a cfunc. It takes int64 and float64, returns one of these or
    nothing, and cannot raise.
    """
    with _LOADING:
        addresses = _addresses(module_name(text, stem), text, stem, tuple(names))
    return dict(zip(names, addresses, strict=True))


@cache
def _addresses(name: str, text: str, stem: str, names: tuple[str, ...]) -> tuple[int, ...]:
    _LOADING.check("compiling")
    code = _read(name)
    if code is None:
        try:
            code = _build(text, stem, names)
        except (
            AttributeError,
            CodegenError,
            RuntimeError,
            TypeError,
        ):  # the code calls another library, or this version of numba differs inside
            return tuple(_by_numba(getattr(load_module(text, stem), n)) for n in names)
        write_file(f"{name}.o", hashlib.sha256(code).digest() + code)
    engine = _engine(code)
    return tuple(engine.get_function_address(f"odesim_{n}") for n in names)


def _read(name: str) -> bytes | None:
    """The cached machine code with this name; None where there is no complete file of it."""
    content = read_file(f"{name}.o") or b""
    digest, code = content[:32], content[32:]
    return code if code and hashlib.sha256(code).digest() == digest else None


@cache
def _engine(code: bytes) -> Any:
    """The LLVM engine that holds this machine code in memory, until the process ends."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _machine() -> Any:
    """The LLVM target machine of this processor, for code at any address."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


def _build(text: str, stem: str, names: tuple[str, ...]) -> bytes:
    """The machine code of these functions, with C calling convention and the names odesim_<name>."""
    import llvmlite.binding as llvm

    # numba would optimise each function, then the library, and make machine code of wrappers that nobody calls; here the functions are
    # linked into one module, which is optimised once
    with _unoptimised(), scalar_front_end():
        module = load_module(text, stem)
    functions = [_overload(getattr(module, name)) for name in names]
    whole = llvm.parse_assembly("")
    for library in {id(library): library for library, _, _ in functions}.values():
        whole.link_in(library._final_module.clone())
    for name, (_, symbol, signature) in zip(names, functions, strict=True):
        whole.link_in(llvm.parse_assembly(_c_function(f"odesim_{name}", symbol, signature)))
    whole.link_in(llvm.parse_assembly(_NO_OWNER))
    wanted = {f"odesim_{name}" for name in names}
    for function in whole.functions:
        if not function.is_declaration and function.name not in wanted:
            function.linkage = "internal"
            if SEPARATE in function.name:
                function.add_function_attribute("noinline")
    _forget(module)
    machine = _machine()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(whole, builder)
    # an object with other symbols could not be loaded in a later process, where numba's run time may not be there: refused, not cached
    foreign = {f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")} - _LIBRARY
    if foreign:
        raise CodegenError(f"generated code calls {', '.join(sorted(foreign))}")
    return bytes(machine.emit_object(whole))


def _forget(module: ModuleType) -> None:
    """Releases what numba keeps of a compiled module until the process ends, some ten megabytes, once its code is ours."""
    for function in vars(module).values():
        if hasattr(function, "overloads") and function.__module__ == module.__name__:  # not imported there
            for result in function.overloads.values():
                with suppress(KeyError):  # was never called by another function
                    function.targetctx.remove_user_function(result.entry_point)
            function.overloads.clear()  # a cycle through objects that Python's collector does not see
    sys.modules.pop(module.__name__, None)


@contextmanager
def _unoptimised() -> Iterator[None]:
    """A context in which numba neither optimises its code nor turns it into machine code.

    Code that was not requested is removed from numba's engine at the end; it would be compiled together with the next request.
    """
    import numba.core.config
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.cpu import CPUContext
    from numba.core.registry import cpu_target

    config: Any = numba.core.config
    cpu_target.target_context.codegen()  # it reads the optimisation level from the configuration when it is created
    with global_compiler_lock:
        before, config.OPT = config.OPT, type(config.OPT)(0)
        disabled, config.DISABLE_JIT = config.DISABLE_JIT, 0  # NUMBA_DISABLE_JIT is for functions of the user
        library: Any = JITCodeLibrary
        context: Any = CPUContext
        unrequested: dict[int, Any] = {}  # libraries by their id
        finalize, library._finalize_specific = library._finalize_specific, lambda self: unrequested.setdefault(id(self), self)
        executable, context.get_executable = context.get_executable, _executable(context.get_executable, unrequested)
        collecting = gc.isenabled()
        gc.disable()  # a compiler makes many objects and few cycles
        try:
            yield
        finally:
            if collecting:
                gc.enable()
            config.DISABLE_JIT = disabled
            config.OPT, library._finalize_specific, context.get_executable = before, finalize, executable
            for unused in unrequested.values():
                unused._codegen._engine._ee.remove_module(unused._final_module)


def _executable(original: Any, unrequested: dict[int, Any]) -> Any:
    """A replacement of numba's get_executable that makes no machine code for functions without a Python wrapper."""
    from numba import _dynfunc  # type: ignore[attr-defined]

    def get_executable(self: Any, library: Any, description: Any, environment: Any) -> Any:
        if library.get_pointer_to_function(description.llvm_cpython_wrapper_name):
            unrequested.pop(id(library), None)
            return original(self, library, description, environment)
        name = description.qualname.split(".")[-1]
        return _dynfunc.make_function(description.lookup_module(), name, "not for Python", 0, environment, (library,))

    return get_executable


def _overload(function: Any) -> tuple[Any, str, Any]:
    """The code library of a compiled function, its symbol there, and its signature."""
    if hasattr(function, "overloads"):
        (overload,) = function.overloads.values()
        return overload.library, overload.fndesc.llvm_func_name, overload.signature
    return function._library, function.native_name.removeprefix("cfunc."), function._sig


def _by_numba(function: Any) -> int:
    """The address of a C function compiled by numba itself, without the cache on disk."""
    import numba

    _, _, signature = _overload(function)
    python = function.py_func if hasattr(function, "py_func") else function._pyfunc
    callback: Any = numba.cfunc(signature, error_model="numpy")(python)
    function.odesim_callback = callback  # lives as long as the module
    return int(callback.address)


def _c_function(name: str, symbol: str, signature: Any) -> str:
    """The LLVM text of a C function that calls a function of numba, which takes pointers to result and exception, returns a status."""
    kinds = [_LETTERS[str(kind)] for kind in signature.args]
    result = _LETTERS[str(signature.return_type)]
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    slot = "ptr" if result == "void" else result
    lines = [
        f'declare i32 @"{symbol}"({", ".join(["ptr", "ptr", *kinds])})',
        f"define {result} @{name}({arguments}) {{",
        f"  %result = alloca {slot}",
        "  %exception = alloca ptr",
        f'  %status = call i32 @"{symbol}"({", ".join(["ptr %result", "ptr %exception", *([arguments] if arguments else [])])})',
    ]
    lines += ["  ret void"] if result == "void" else [f"  %value = load {result}, ptr %result", f"  ret {result} %value"]
    return "\n".join([*lines, "}"])


@contextmanager
def scalar_front_end() -> Iterator[None]:
    """A context in which numba compiles with this front end. The caller holds numba's compiler lock."""
    from numba.core import base, compiler, errors, event, ir, lowering, postproc, ssa, typeinfer
    from numba.core.targetconfig import TargetConfig
    from numba.core.types.functions import BaseFunction

    changes: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (compiler.Compiler, "define_pipelines", lambda _: _pipelines),
        (base, "_has_loc", cache),  # whether an implementation takes a location: inspect is slow
        (BaseFunction, "get_call_type", _typed),
        (base.BaseContext, "get_function", _implemented),
        (TargetConfig, "__eq__", _equal),
        (TargetConfig, "__hash__", _hash),
        (postproc.PostProcessor, "run", _without_lifetimes),
        (ssa, "_run_block_rewrite", _where_it_occurs),
        (ir.Inst, "_rec_list_vars", _variables),
        # what an error in generated code would say of its place, and warnings of it: nobody reads them
        *((place, "new_error_context", _no_context) for place in (typeinfer, lowering)),
        (vars(errors)["WarningsFixer"], "catch_warnings", _no_context),
        *((event, name, _nothing) for name in ("start_event", "end_event")),  # nobody listens
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    try:
        for place, name, change in changes:
            setattr(place, name, change(getattr(place, name)))
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def _equal(original: Any) -> Any:
    """A replacement of the comparison of two sets of compiler flags: those that are set alike are equal."""
    return lambda self, other: (type(other) is type(self) and self._values == other._values) or original(self, other)


def _hash(original: Any) -> Any:
    """A replacement of the hash of compiler flags, which is that of their names: it is computed once."""
    answers: dict[type, int] = {}

    def hash_of(self: Any) -> int:
        if type(self) not in answers:
            answers[type(self)] = original(self)
        return answers[type(self)]

    return hash_of


def _without_lifetimes(original: Any) -> Any:
    """A replacement of the analysis of variables between passes: how long each lives is computed where it is asked for, at the end."""
    from numba.core.postproc import VariableLifetime
    from numba.core.transforms import canonicalize_cfg

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir.is_generator:
            return original(self, emit_dels, extend_lifetimes)  # type: ignore[no-any-return]
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime, self.func_ir.generator_info = VariableLifetime(self.func_ir.blocks), None
        return None

    return run


def _where_it_occurs(original: Any) -> Any:
    """A replacement of the pass that gives a variable's assignments names of their own: it looks at the blocks that have the variable.

    Those names occur in no block before, so what a block has is collected once.
    """
    from numba.core.ir import Assign, Block

    def rewrite(blocks: dict[int, Any], states: dict[str, Any], handler: Any) -> dict[int, Any]:
        new = {}
        for label, block in blocks.items():
            if not hasattr(block, "odesim_names"):
                block.odesim_names = {v.name for statement in block.body for v in statement.list_vars()}
            new[label] = block
            if states["varname"] in block.odesim_names:
                states["label"], states["block"] = label, block
                new[label] = Block(scope=block.scope, loc=block.loc)
                new[label].odesim_names = block.odesim_names
                rules = {True: handler.on_assign, False: handler.on_other}
                new[label].body = [rules[isinstance(statement, Assign)](states, statement) for statement in block.body]
        return new

    return rewrite


def _variables(original: Any) -> Any:
    """A replacement of the list of variables in a part of a statement: most parts are places in the text or names, which have none."""
    from numba.core.ir import Loc, Var

    def variables(self: Any, part: Any) -> list[Any]:
        kind = type(part)
        if kind is Var:
            return [part]
        if kind is dict:
            part = part.values()
        elif kind not in (list, tuple):
            return original(self, part)  # type: ignore[no-any-return]
        return [v for inner in part if type(inner) not in none for v in variables(self, inner)]

    none = {Loc, str, int, float, bool, type(None)}
    return variables


def _nothing(original: Any) -> Any:
    """A replacement of any function that does nothing."""
    return lambda *arguments, **options: None


def _no_context(original: Any) -> Any:
    """A replacement of a function that returns a context: one that does nothing."""
    context = nullcontext()
    return lambda *arguments, **options: context


def _pipelines(self: Any) -> list[Any]:
    """The passes of scalar code."""
    from numba.core import typed_passes, untyped_passes
    from numba.core.compiler_machinery import PassManager

    passes = PassManager("scalar")
    for name in ("TranslateByteCode", "FixupArgs", "IRProcessing", "DeadBranchPrune", "GenericRewrites", "ReconstructSSA"):
        passes.add_pass(getattr(untyped_passes, name), name)
    for name in ("NopythonTypeInference", "PreLowerStripPhis", "IRLegalization", "NativeLowering", "NoPythonBackend"):
        passes.add_pass(getattr(typed_passes, name), name)
    passes.finalize()
    return [passes]


def _plain(key: Any, args: Any) -> Any:
    """The types of an operator's arguments, a literal by its type; None where one is not a number, or all are literals."""
    from numba.core import types

    if key not in OPERATORS:
        return None
    if all(isinstance(kind, types.Literal) for kind in args):
        return None
    kinds = tuple(kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind for kind in args)
    numbers = (types.Float, types.Integer, types.Boolean, types.CPointer)
    return kinds if all(isinstance(k, numbers) and not isinstance(k, types.Literal) for k in kinds) else None


def _typed(original: Any) -> Any:
    """A replacement of numba's get_call_type that remembers the signatures of operators on numbers."""
    kinds_of: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, keywords: Any) -> Any:
        kinds = _plain(self.typing_key, args) if not keywords else None
        if kinds is None:
            return original(self, context, args, keywords)
        if (self, kinds) not in kinds_of:
            kinds_of[self, kinds] = original(self, context, kinds, keywords)
        return kinds_of[self, kinds]

    return get_call_type


def _implemented(original: Any) -> Any:
    """A replacement of numba's get_function that remembers the code of operators on numbers."""
    codes: dict[Any, Any] = {}

    def get_function(self: Any, function: Any, signature: Any, **options: Any) -> Any:
        key = getattr(function, "typing_key", None)
        if options or _plain(key, signature.args) is None:
            return original(self, function, signature, **options)
        if (self, key, signature) not in codes:
            codes[self, key, signature] = original(self, function, signature)
        return codes[self, key, signature]

    return get_function
