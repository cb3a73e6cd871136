"""The table of backends: what each one compiles to, and which uses, methods and dtypes it supports.

It imports no numerical library, so that help texts can read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from odesim.base.errors import ParamError, no_such

EXPLICIT, STIFF, STABILISED, NOISY = (  # by the names of their files: no method is imported
    tuple(sorted(path.stem for path in (Path(__file__).parents[1] / "stepper" / folder).glob("[!_]*.py")))
    for folder in ("methods", "rosenbrock_methods", "stabilised_methods", "noise_methods")
)
SERIES = ("taylor",)
TABLED = (*EXPLICIT, *STIFF, *STABILISED)
METHODS = (*TABLED, *SERIES)
DTYPES = ("float64", "float32")
OF_OTHERS = {"gpu": "cuda", "cupy": "cuda", "cpu": "numba", "jit": "numba"}  # what backends are called elsewhere
RUN, ENSEMBLE, TRAINING = "a run", "an ensemble", "a training"


@dataclass(frozen=True)
class Ability:
    """The methods that a backend supports for one use: a run, an ensemble or a training.

    summary: a phrase for help texts. methods: those it supports. strict: those that give the same bits on every machine.
    """

    summary: str
    methods: tuple[str, ...] = ()
    strict: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backend:
    """One backend and what it supports.

    right: MODULE:FUNCTION that makes right-hand sides, of (CompiledRHS, Numbers, stays) as odesim.run.problem has it; a training has none.
    compiles: what one is compiled to; empty where numpy evaluates it. gpu: it computes on a GPU, through cupy.
    uses: {RUN, ENSEMBLE or TRAINING: Ability}. dtypes: of states. arrays: libraries of result arrays.
    """

    name: str
    right: str
    compiles: str
    gpu: bool
    uses: Mapping[str, Ability]
    dtypes: tuple[str, ...] = DTYPES
    arrays: tuple[str, ...] = ("numpy",)


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "numba",
            "odesim.run.problem:numba_right_side",
            compiles="C functions",
            gpu=False,
            uses={
                RUN: Ability("compiled for the processor", METHODS, METHODS),
                ENSEMBLE: Ability("compiled for the processor", METHODS, METHODS),
            },
        ),
        Backend(
            "numpy",
            "odesim.run.problem:numpy_right_side",
            compiles="",
            gpu=False,
            uses={RUN: Ability("whole arrays; slow, for checks", TABLED, EXPLICIT), TRAINING: Ability("the processor")},
        ),
        Backend(
            "cuda",
            "odesim.run.problem:cuda_right_side",
            compiles="CUDA C++",
            gpu=True,
            uses={
                RUN: Ability("a GPU, with explicit methods", EXPLICIT, EXPLICIT),
                ENSEMBLE: Ability("a GPU, one thread per member, up to 64 states", (*EXPLICIT, *STIFF), (*EXPLICIT, *STIFF)),
                TRAINING: Ability("a GPU"),
            },
            arrays=("numpy", "cupy"),
        ),
    )
}


def backends_for(use: str) -> tuple[str, ...]:
    """Names of the backends that support a use, the default first."""
    return tuple(name for name, backend in BACKENDS.items() if use in backend.uses)


def find_backend(name: str, use: str = "") -> Backend:
    """The backend with this name. Raises ParamError where there is none, or where it does not support this use."""
    choices = backends_for(use) if use else tuple(BACKENDS)
    if name not in choices:
        raise ParamError(no_such("backend", str(name), choices, use, meant=OF_OTHERS.get(str(name).lower(), "")))
    return BACKENDS[name]
