"""How a run is integrated: the options that commands, results and stored runs have in common.

A field here is an option of `odesim integrate` and `odesim ensemble` and an argument of odesim.integrate and odesim.ensemble, under its
own name. What is stored of a run, what identifies it and how it is computed again follow from the fields alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from odesim.base.backends import Backend, find_backend

ORDINARY, RESCALED = "ordinary", "rescaled"
CLOCKS = (ORDINARY, RESCALED)


@dataclass(frozen=True)
class RunOptions:
    """What a run is asked for beside the model and its numbers.

    method: by name, or "auto". step: a fixed step. rtol, atol: tolerances of adaptive steps. max_steps: a run ends after so many.
    max_step: no step is longer. stop_at: times that a step ends at. backend: what computes; dtype: of states; strict: with the same bits on
    every machine. clock: one of CLOCKS. seed: of what is drawn at random.
    """

    method: str = "auto"
    step: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9
    max_steps: int = 1_000_000
    max_step: float | None = None
    stop_at: Sequence[float] = ()
    backend: str = "numba"
    dtype: str = "float64"
    strict: bool = False
    clock: str = ORDINARY
    seed: int = 0

    @property
    def on(self) -> Backend:
        """The backend, with what it can do. Raises ParamError where there is none of this name."""
        return find_backend(self.backend)

    @property
    def rescaled(self) -> bool:
        """Whether the run is in the rescaled clock."""
        return self.clock == RESCALED

    def attributes(self) -> dict[str, Any]:
        """{option: value} as plain data, which options_of reads."""
        return {**asdict(self), "stop_at": list(self.stop_at)}


NAMES = tuple(field.name for field in fields(RunOptions))


def options_of(said: Mapping[str, Any]) -> RunOptions:
    """The options among these attributes; one that a run of an older version does not name had its default."""
    given = {name: said[name] for name in NAMES if name in said}
    return RunOptions(**{**given, "stop_at": tuple(given.get("stop_at", ())), "strict": bool(given.get("strict", False))})
