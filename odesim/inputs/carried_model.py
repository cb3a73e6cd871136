"""A model on its way to another process: a System as it is, a file with its content and sha256."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ModelError
from odesim.inputs.registry import is_path, load_unchanged_file

if TYPE_CHECKING:
    from odesim.symbolic import System


@dataclass(frozen=True)
class CarriedFile:
    """A model file: path (with :NAME where that was given), content and its sha256."""

    path: str
    content: bytes
    digest: str

    def load(self) -> System:
        """The System: of the file at path if it is there with this sha256, as in a shared folder, else of the content."""
        try:
            return load_unchanged_file(self.path, self.digest)
        except ModelError:
            file, constant = split_ref(self.path)
            with tempfile.TemporaryDirectory(prefix="odesim-") as folder:
                copy = Path(folder) / file.name
                copy.write_bytes(self.content)
                return load_unchanged_file(f"{copy}{constant}", self.digest)


def split_ref(ref: str) -> tuple[Path, str]:
    """FILE.py and `:NAME` of a path FILE.py:NAME; FILE.py and nothing of FILE.py."""
    file, colon, constant = ref.rpartition(":")
    return (Path(file), f":{constant}") if colon and file.endswith(".py") else (Path(ref), "")


def carried_model(system: System, origin: Mapping[str, Any]) -> System | CarriedFile | None:
    """The form in which a model travels to another process; None for one that is installed everywhere and found by its name.

    origin: as load_with_origin returns it. Raises ModelError if the file is not that of the origin any more.
    """
    ref = origin.get("ref")
    if ref is None:
        return system
    if not is_path(ref):
        return None
    file, _ = split_ref(ref)
    try:
        content = file.expanduser().read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read model file {str(file)!r}: {error.strerror}") from None
    digest = sha256(content).hexdigest()
    if digest != origin["model_sha256"]:
        raise ModelError(f"{file} was changed while it was used: start again")
    return CarriedFile(ref, content, digest)
