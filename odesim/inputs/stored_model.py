"""The System of a stored run. A stored run is data: no file that it names is executed."""

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ParamError, StoreError
from odesim.inputs.registry import is_path, load_model, load_unchanged_file

if TYPE_CHECKING:
    from odesim.symbolic import System


def stored_model(path: Path, attributes: Mapping[str, Any], model: str | PathLike[str] | None = None) -> "System":
    """The System of the run at `path` with these attributes: an installed model by its name, or the model file `model`.

    model: FILE.py or FILE.py:NAME; it is executed only if it has the sha256 that the run stores.
    Raises ParamError, StoreError, ModelError.
    """
    ref, digest = attributes.get("ref"), attributes.get("model_sha256")
    if not isinstance(ref, str):
        raise StoreError(f"{path} is damaged: its attribute 'ref' is {str(ref)[:60]!r}")
    if not is_path(ref):
        if model is not None:
            raise ParamError(f"{path} was made from the installed model {ref}; --model is for a run of a model file")
        return load_model(ref)
    name = f"the model file {ref[:200]!r}"
    if not isinstance(digest, str) or len(digest) != 64:
        raise ParamError(
            f"{path} was made from {name} and does not store its sha256, so that nothing says which file is meant: integrate anew"
        )
    if model is None:
        raise ParamError(f"{path} was made from {name}; a file that a run names is not run: give it with --model FILE.py")
    file = fspath(model)
    if not is_path(file):
        raise ParamError(f"{path} was made from {name}: --model takes that file, not {file[:60]!r}")
    return load_unchanged_file(with_constant(file, ref), digest)


def with_constant(file: str, ref: str) -> str:
    """The path of a model file, with the constant that the stored path `ref` names where the file's own names none."""
    _, colon, constant = ref.rpartition(":")
    needs_constant = file.endswith(".py") and colon and constant.isidentifier()
    return f"{file}:{constant}" if needs_constant else file
