"""C functions from generated text, cached on disk as machine code: a warm start loads it, and compiles nothing."""

import gc
import hashlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from odesim.base.errors import CacheWarning, CodegenError
from odesim.base.memo import ForkLock
from odesim.runtime.constants import LOOPS
from odesim.targets.cache import load_module, module_name, read_file, write_file

# functions of the C library that machine code may call; any other would belong to the run time of numba or Python
_SIMPLE = ("sqrt", "floor", "asin", "acos", "atan")
_LIBRARY = frozenset(("memset", "memcpy", "memmove", "fma", "ceil", "exp", "log", "pow", "tanh", "erf", "atan2", *_SIMPLE))
_LIBRARY |= {f"{name}f" for name in _SIMPLE}
# without a lock, one of two threads that load the same code would drop its copy while the other still calls it
_LOADING = ForkLock()
WATCHERS: list[Callable[[float | None], None]] = []
"""Called with None when a build of machine code in this process begins, and with its seconds when it ends."""


def load_native(
    text: str, stem: str, names: Sequence[str], *, once: bool = False, unrolled: bool = True, wide: bool = False
) -> dict[str, int]:
    """{name: address} of these functions of the module with this text; the addresses are valid until the process ends.

    once: only functions of the option `loops` get all passes, all others a few, and what is not short stands there once. A driver, whose
    time is that of such loops, of straight lines and of what it calls by address, is built in half the time so, and as fast.
    unrolled: with unrolled loops; without, the values of laws and events are built in .6 to .8 of the time, and runs are as fast.
    wide: in the widest registers there are. LLVM takes half of the 512 bits of an Intel processor, whose first ones slowed their clock for
    them. Members in lanes take .67 to .98 of the time in all of them (family 6, model 167).
    Each is a function of odesim.runtime.functions.njit with a signature. It takes int64 and float64, returns one of these or nothing,
    and cannot raise.
    """
    with _LOADING:
        addresses = _addresses(module_name(text, stem), text, stem, tuple(names), once, unrolled and not once, wide)
    return dict(zip(names, addresses, strict=True))


@cache
def _addresses(name: str, text: str, stem: str, names: tuple[str, ...], once: bool, unrolled: bool, wide: bool) -> tuple[int, ...]:
    _LOADING.check("compiling")
    code = _read(name)
    if code is None:
        _notify(None)
        begun, collects = time.monotonic(), gc.isenabled()
        # of what the front end makes nothing is garbage before it ends, and to look for some was an eighth of the time. Nothing else in
        # odesim switches this, and one build runs at a time
        gc.disable()
        try:
            code = _build(text, stem, names, once, unrolled, wide)
        except (AttributeError, CodegenError, RuntimeError, TypeError) as error:
            # the text has what the front end lacks or calls another library, or this version of llvmlite differs inside
            from odesim.runtime.by_numba import address

            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            warnings.warn(
                f"numba compiles {stem}, in several times the time and anew in each process: {reason}", CacheWarning, stacklevel=3
            )

            module = load_module(text, stem)
            return tuple(address(getattr(module, n)) for n in names)
        finally:
            if collects:
                gc.enable()
            _notify(time.monotonic() - begun)
        write_file(f"{name}.o", hashlib.sha256(code).digest() + code)
    engine = _engine(code)
    return tuple(engine.get_function_address(f"odesim_{n}") for n in names)


def _notify(seconds: float | None) -> None:
    """Calls the WATCHERS."""
    for watcher in WATCHERS:
        watcher(seconds)


def _read(name: str) -> bytes | None:
    """The cached machine code with this name; None where there is no complete file of it."""
    content = read_file(f"{name}.o") or b""
    digest, code = content[:32], content[32:]
    return code if code and hashlib.sha256(code).digest() == digest else None


@cache
def _engine(code: bytes) -> Any:
    """The LLVM engine that holds this machine code in memory, until the process ends."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _machine(level: int = 3, wide: bool = False) -> Any:
    """The LLVM target machine of this processor, for code at any address. level: of the care with which it makes instructions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = llvm.get_host_cpu_features()
    features = host.flatten() + ",-prefer-256-bit" * (wide and host.get("avx512f", False))
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=level, reloc="default", codemodel="jitdefault", jit=True
    )


def _build(text: str, stem: str, names: tuple[str, ...], once: bool = False, unrolled: bool = True, wide: bool = False) -> bytes:
    """The machine code of these functions, with C calling convention and the names odesim_<name>."""

    from odesim.targets.front_end import write_module

    machine, module = _machine(1 if once else 3, wide), load_module(text, stem)
    whole = _optimised(write_module(module, text, names, once), machine, once, unrolled)
    sys.modules.pop(module.__name__, None)
    # an object with other symbols could not be loaded in a later process, where another library may not be there: refused, not cached
    foreign = {f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")} - _LIBRARY
    if foreign:
        raise CodegenError(f"generated code calls {', '.join(sorted(foreign))}")
    return bytes(machine.emit_object(whole))


def _optimised(text: str, machine: Any, once: bool, unrolled: bool) -> Any:
    """A module of LLVM's language after LLVM's passes; once, unrolled: as of load_native."""
    import llvmlite.binding as llvm

    whole = llvm.parse_assembly(text)
    whole.triple, whole.data_layout = llvm.get_default_triple(), str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.loop_unrolling, options.slp_vectorization = True, unrolled, unrolled
    builder = llvm.create_pass_builder(machine, options)
    if once:
        few = llvm.create_new_module_pass_manager()
        few.add_always_inliner_pass()
        few.add_sroa_pass()
        few.add_simplify_cfg_pass()
        few.add_instruction_combine_pass()
        few.run(whole, builder)
        for function in whole.functions:
            if not function.is_declaration and not function.name.startswith(LOOPS):
                function.add_function_attribute("noinline")
                function.add_function_attribute("optnone")
    builder.getModulePassManager().run(whole, builder)
    # machine code is made with care all the same: a driver of small systems would take up to twice the time
    return llvm.parse_assembly(str(whole).replace(" optnone", "")) if once else whole
