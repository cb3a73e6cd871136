"""A System as a module of Python that needs no odesim: its right-hand side on whole arrays, for numpy or for JAX.

The text is that of the numpy backend (odesim.targets.numpy_text); here stands what is around it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sympy as sp

from odesim.base.errors import CodegenError, counted
from odesim.display.formulas import definitions_text, equations_text
from odesim.ir.passes import lower, lower_expressions
from odesim.ir.program import Program
from odesim.symbolic.indices import array_at
from odesim.symbolic.parts import free_in_order
from odesim.symbolic.system import System
from odesim.targets.expressions import Tree
from odesim.targets.numpy_text import ArrayPrinter, array_text, index_arrays

# The numbers that a file of code or a document begins with.

MOST = 100_000
"""Numbers in one file."""


class Defaults(Protocol):
    """Sizes, parameters, initial values and span, as odesim.inputs.bind gives them."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def initial(self) -> Mapping[str, Any]: ...
    @property
    def t0(self) -> float: ...
    @property
    def t1(self) -> float: ...


def check_few(defaults: Defaults) -> None:
    """Raises CodegenError where an array has too many numbers for a file that is read as text."""
    for name, values in (*defaults.params.items(), *defaults.initial.items()):
        if np.size(values) > MOST:
            raise CodegenError(f"{name} has {counted(np.size(values), 'number')}, and a file holds at most {MOST}: choose smaller sizes")


@dataclass(frozen=True)
class Library:
    """A library of arrays. special: {function of generated text: its value in Python}; others are no part of it."""

    name: str
    imports: Sequence[str]
    xp: str
    special: Mapping[str, str]


# scipy's functions where they are real: a complex value, or the NaN of a pole of gamma, would be another number than that of our runs
REAL = "lambda x: (lambda w: np.where(w.imag == 0, w.real, np.nan))(special.lambertw(x, {}))"
NUMPY = Library(
    "numpy", ("import numpy as np", "from scipy import special"), "np",
    {
        "erf": "special.erf", "erfc": "special.erfc", "lambertw": REAL.format(0), "lambertw_lower": REAL.format(-1),
        "sinc": "lambda x: np.sinc(x / np.pi)", "spherical_jn": "lambda n, x: special.spherical_jn(int(n), x)",
        "binomial": "lambda n, k: np.where((k >= 0) & (n >= k), special.binom(n, k), 0.0)", "inverse": "np.linalg.inv",
    },
)  # fmt: skip
JAX = Library(
    "JAX",
    ("import jax", "import jax.numpy as jnp", "from jax.scipy import special", "", 'jax.config.update("jax_enable_x64", True)'),
    "jnp",
    {
        "erf": "special.erf", "erfc": "special.erfc", "sinc": "lambda x: jnp.sinc(x / jnp.pi)", "inverse": "jnp.linalg.inv",
    },
)  # fmt: skip


class CodePrinter(ArrayPrinter):
    """A printer that notes which special functions its text calls. Raises CodegenError for one that the library lacks."""

    def __init__(self, library: Library, called: set[str], *arguments: Any) -> None:
        super().__init__(*arguments)
        self.library, self.called = library, called

    def call(self, function: str, *args: Tree) -> Tree:
        tree = super().call(function, *args)
        special = tree.func.id.removeprefix("_")  # type: ignore[attr-defined]
        if not special.startswith("xp."):
            if special not in self.library.special:
                raise CodegenError(f"{self.library.name} has no {function}()")
            self.called.add(special)
        return tree

    def scattered(self, target: str, shape: str, place: str, text: str) -> list[str]:
        if self.library is NUMPY:
            return super().scattered(target, shape, place, text)
        return [f"{target} = _xp.zeros(({shape})).at[({place})].add({text})"]


def array_code(system: System, defaults: Defaults, library: Library) -> str:
    """The module: SIZES, PARAMETERS, INITIAL, SPAN, right_hand_side(t, state, parameters) and observables(t, state, parameters).

    Raises CodegenError for a function that the library lacks.
    """
    called: set[str] = set()
    rates = lower(system, defaults.sizes)
    functions = [_function(system, rates, "_rates", library, called)]
    results = {name: f"d_{name}" for name in system.states}
    wrappers = [_wrapper(system, rates, "right_hand_side", "_rates", results, _rate_words(system), library)]
    seen, left = _observables(system, library, called)
    if seen is not None:
        functions.append(_function(system, seen[0], "_seen", library, called))
        wrappers.append(_wrapper(system, seen[0], "observables", "_seen", seen[1], "{name: value} of what the model observes.", library))
    helpers = [f"_{name} = {library.special[name]}" for name in sorted(called | _inverses(rates, seen))]
    imports = [line for line in library.imports if "special" not in line or any("special." in line for line in helpers)]
    text = [*_header(system, left), "", *imports, "", *_numbers(system, defaults, library)]
    text += ["", *helpers] if helpers else []
    for part in (*wrappers, *functions):
        text += ["", "", part]
    return "\n".join(text) + "\n"


def _inverses(*programs: Any) -> set[str]:
    nests = [p[0] if isinstance(p, tuple) else p for p in programs if p is not None]
    return {"inverse"} if any(s.op == "inverse" for p in nests for s in p.statements()) else set()


def _rate_words(system: System) -> str:
    what = "next value" if system.discrete else "derivative by t"
    return f"{{state: its {what}}} of a state {{name: array}} and parameters {{name: array}}."


def _function(system: System, program: Program, name: str, library: Library, called: set[str]) -> str:
    def printer(*arguments: Any) -> ArrayPrinter:
        return CodePrinter(library, called, *arguments)

    return array_text(program, name, sorted(program.inputs()), printer=printer)


def _wrapper(system: System, program: Program, name: str, function: str, results: Mapping[str, str], words: str, library: Library) -> str:
    """The public function around a generated one."""
    indices, sizes, xp = index_arrays(program), sorted(program.sizes), library.xp
    arguments = [xp, *(f"sizes[{n!r}]" for n in sizes)]
    for n in sorted(program.inputs()):
        home = "state" if n in system.states else "sizes" if n in system.size_names else "parameters"
        value = "t" if n == "t" else f"{home}[{n!r}]"
        arguments.append(f"{xp}.asarray({value})" if n in indices else f"{xp}.asarray({value}, dtype=float)")
    lines = [f"def {name}(t, state, parameters=PARAMETERS, sizes=SIZES):", f'    """{words}"""', f"    values = {function}("]
    lines += [f"        {a}," for a in arguments]
    lines += ["    )", f"    return {{{', '.join(f'{n!r}: values[{r!r}]' for n, r in results.items())}}}"]
    return "\n".join(lines)


def _observables(system: System, library: Library, called: set[str]) -> tuple[tuple[Program, dict[str, str]] | None, list[str]]:
    """The program of the observables and {observable: its output}; and the names of those that have no form there."""
    outputs: dict[Any, Any] = {}
    names: dict[str, str] = {}
    left = [name for name, e in system.observables.items() if not isinstance(e, sp.Basic)]
    for name, e in system.observables.items():
        if name in left:
            continue
        # each by itself first: one that the library cannot compute is left out, and not the others with it
        place = f"_seen{len(names)}"
        key = array_at(place, free_in_order(e, system.axes), system.axes)
        try:
            _function(system, lower_expressions({key: e}, system.axes), "_", library, set(called))
        except CodegenError:
            left.append(name)
            continue
        outputs[key], names[name] = e, place
    return (lower_expressions(outputs, system.axes), names) if outputs else None, left


def header_lines(system: System, left: Sequence[str]) -> list[str]:
    """What a file says of the System: its source, equations, and what of it is not there."""
    from odesim.base.options import __version__

    lines = [f"{system.name}: {system.source}. Written by odesim {__version__}.", ""]
    lines += [*equations_text(system).splitlines(), *(f"  {line}" for line in definitions_text(system).splitlines())]
    missing = [word for word, there in (("noise", system.noise), ("events", system.events)) if there]
    if missing or left:
        lines += ["", f"Not in this file: {', '.join([*missing, *left])}."]
    return lines


def _header(system: System, left: Sequence[str]) -> list[str]:
    lines = [line.replace("\\", "\\\\").replace('"""', "'''") for line in header_lines(system, left)]
    return [f'"""{lines[0]}', *lines[1:], '"""']


def _numbers(system: System, defaults: Defaults, library: Library) -> list[str]:
    check_few(defaults)

    def value(x: Any) -> str:
        a = np.asarray(x)
        return repr(a.item()) if a.ndim == 0 else f"{library.xp}.array({a.tolist()!r})"

    def table(name: str, values: Mapping[str, Any], write: Callable[[Any], str]) -> str:
        return f"{name} = {{{', '.join(f'{n!r}: {write(v)}' for n, v in values.items())}}}"

    return [
        table("SIZES", defaults.sizes, repr),
        table("PARAMETERS", defaults.params, value),
        table("INITIAL", defaults.initial, lambda x: f"{library.xp}.array({np.asarray(x).tolist()!r})"),
        f"SPAN = ({defaults.t0!r}, {defaults.t1!r})",
    ]
