"""What computes: one row a backend, with all that it can do. Whoever needs to know asks here.

It imports no numbers, so that help can ask too. How a backend computes right sides is a row in odesim.engines.right_sides.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from odesim.errors import ParamError, no_such

EXPLICIT = ("tsit5", "vern7", "dop853", "euler", "rk4")
STIFF = ("rodas4", "rodas5p")
METHODS = (*EXPLICIT, *STIFF)
DTYPES = ("float64", "float32")
RUN, ENSEMBLE, TRAINING = "a run", "an ensemble", "a training"


@dataclass(frozen=True)
class Ability:
    """What a backend does for one use. methods: by these; strict: of these, by those with the same bits on every machine.

    summary: what it is there, in a phrase.
    """

    summary: str
    methods: tuple[str, ...] = ()
    strict: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backend:
    """A backend and what it can do.

    compiles: what a right side becomes there, nothing where numpy evaluates it. gpu: it computes on a GPU, through cupy.
    uses {RUN, ENSEMBLE or TRAINING: Ability}. dtypes: of states. events: it finds them. arrays: whose arrays results can be.
    """

    name: str
    compiles: str
    gpu: bool
    uses: Mapping[str, Ability]
    dtypes: tuple[str, ...] = DTYPES
    events: bool = True
    arrays: tuple[str, ...] = ("numpy",)


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "numba",
            compiles="C functions",
            gpu=False,
            uses={
                RUN: Ability("compiled for the processor", METHODS, METHODS),
                ENSEMBLE: Ability("compiled for the processor, eight members at once", METHODS, METHODS),
            },
        ),
        Backend(
            "numpy",
            compiles="",
            gpu=False,
            uses={
                RUN: Ability("whole arrays, slower, what the others are tested against", METHODS, EXPLICIT),
                TRAINING: Ability("the processor"),
            },
        ),
        Backend(
            "cuda",
            compiles="CUDA C++",
            gpu=True,
            uses={
                RUN: Ability("a GPU, by an explicit method", EXPLICIT, EXPLICIT),
                ENSEMBLE: Ability("a GPU, one thread a member, up to 64 states", METHODS, METHODS),
                TRAINING: Ability("a GPU"),
            },
            arrays=("numpy", "cupy"),
        ),
    )
}


def backends_for(use: str) -> tuple[str, ...]:
    """Names of the backends that are there for a use, the default first."""
    return tuple(name for name, backend in BACKENDS.items() if use in backend.uses)


def find_backend(name: str, use: str = "") -> Backend:
    """The backend of this name. Raises ParamError where there is none, or none for this use."""
    choices = backends_for(use) if use else tuple(BACKENDS)
    if name not in choices:
        raise ParamError(no_such("backend", str(name), choices, use))
    return BACKENDS[name]
