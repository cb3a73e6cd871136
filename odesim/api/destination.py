"""The place where a run is stored."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Destination:
    """The folder of a run, and what happens if it exists already. shard: (i, n), the i-th of n parts of an ensemble."""

    path: Path
    overwrite: bool = False
    resume: bool = False
    shard: tuple[int, int] | None = None

    @property
    def joins(self) -> bool:
        """Whether a run that exists there is continued."""
        from odesim.store.paths import is_taken

        return (self.resume or self.shard is not None) and is_taken(self.path)
