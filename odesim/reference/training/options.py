"""Options of a training beside its experiment, and the place where it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from odesim.lab.training.record import Checkpoint, Sink


@dataclass(frozen=True)
class TrainingOptions:
    """How an experiment is trained.

    steps: updates, the experiment's own number where None. save: how many iterations are recorded, all or about 1001 of more where None.
    observe: costly or large observables that are recorded at all of them. dtype: of all numbers. backend: "numpy", or "cuda": cupy and a
    GPU; what is drawn, recorded and kept is in numpy either way. threads: of numpy's matrix products; their bits may depend on it.
    """

    steps: int | None = None
    save: int | None = None
    observe: Sequence[str] = ()
    dtype: str = "float64"
    backend: str = "numpy"
    threads: int = 1


@dataclass(frozen=True)
class TrainingStorage:
    """The place where a training is kept. sink: takes the rows in blocks; without one they stay in memory.

    checkpoint: a file, written every checkpoint_every seconds and at the end. resume_from: the content of such a file.
    """

    sink: Sink | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = 5.0
    resume_from: Checkpoint | None = None
