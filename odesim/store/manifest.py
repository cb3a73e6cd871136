"""The manifest of an ensemble, and its folder with empty arrays: both are written before anything is computed."""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.errors import ParamError
from odesim.base.options import NAMES
from odesim.ensembles.design import Design, Points, Table
from odesim.ensembles.request import Outputs
from odesim.stepper.codes import UNDONE
from odesim.store.chunks import create_array, create_group, write_group
from odesim.store.paths import RUN_FORMAT, RUN_MARK, publish, temporary_path
from odesim.store.plain import to_plain
from odesim.store.schema import ENSEMBLE, INITIAL, MEMBER, PARAMS, TIME, run_of_kind

POINTS = "points"
ATTEMPT = "attempt"
COUNTS: dict[str, tuple[Any, Any]] = {
    "t_end": (np.float64, np.nan),
    "steps": (np.int64, 0),
    "rejected": (np.int64, 0),
    "method": (np.int8, UNDONE),
}
LEDGER = ("status", *COUNTS)
# attributes in which two runs of the same request agree, beside the options
IDENTITY = ("model", "sizes", "span", "kernel")


@dataclass(frozen=True)
class Manifest:
    """Everything that defines a stored ensemble. params, initial: values that all members share.

    dims {state: names of its axes}; labels {name of a parameter or state: (name of its array, names of its axes)}.
    """

    attributes: Mapping[str, Any]
    design: Design
    params: Mapping[str, Any]
    initial: Mapping[str, Any]
    times: Array
    layout: Layout
    dtype: str
    chunk: int
    outputs: Outputs
    dims: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, tuple[str, tuple[str, ...]]]

    def identity(self) -> dict[str, str]:
        """{name: digest} of everything that determines the results; resume needs all of it equal."""
        digests = {"observables": digest_text(list(self.outputs.observe)), "max_events": digest_text(self.outputs.max_events)}
        digests |= option_digests(self.attributes)  # before the kernel, which follows from them
        digests |= {key: digest_text(to_plain(self.attributes[key])) for key in IDENTITY}
        if "added_events" in self.attributes:
            digests["added events"] = digest_text(list(self.attributes["added_events"]))
        digests["saved times"] = digest([self.times])
        digests["members"] = digest_text([self.design.count, self.chunk, sorted(self.design.names)])
        digests |= {name: digest([np.asarray(value)]) for name, value in {**self.params, **self.initial}.items()}
        for part in self.design.parts:
            arrays: Iterable[Array] = ()
            if isinstance(part, Points):
                arrays = [part.points]
            elif isinstance(part, Table):
                arrays = (np.asarray(part.table[a : a + self.chunk]) for a in range(0, self.design.count, self.chunk))
            digests[part.name] = digest(arrays, json.dumps(part.to_plain()))
        return digests


# arrays enter as float64, so that a parameter given as 1 and one given as 1.0 are the same
def digest(arrays: Iterable[Array], text: str = "") -> str:
    """16 hex digits of the sha256 of text and of the arrays as float64."""
    sha = hashlib.sha256(text.encode())
    for array in arrays:
        sha.update(np.ascontiguousarray(array, np.float64).tobytes())
    return sha.hexdigest()[:16]


def digest_text(value: Any) -> str:
    """16 hex digits of the sha256 of plain data, as JSON."""
    return digest([], json.dumps(value, sort_keys=True))


def option_digests(attributes: Mapping[str, Any]) -> dict[str, str]:
    """{option: digest} of a run with these attributes."""
    values = {name: attributes[name] for name in NAMES}
    return {name: digest_text(to_plain(int(value) if isinstance(value, bool) else value)) for name, value in values.items()}


def ensemble_attributes(path: str | Path) -> dict[str, Any]:
    """The attributes of the ensemble stored at path. Raises StoreError if there is none."""
    return run_of_kind(path, ENSEMBLE).attributes


def check_same_ensemble(path: Path, identity: Mapping[str, str]) -> None:
    """Raises ParamError where the ensemble stored at path is another one, with the first thing that differs."""
    old = ensemble_attributes(path)["identity"]
    for name in {"backend": "", "added events": "", **identity, **old}:  # the first two: with others the kernel is another, too
        if identity.get(name) != old.get(name):
            raise ParamError(f"{path} holds another ensemble: its {name} {'differ' if name.endswith('s') else 'differs'}")


def array_names(layout: Layout, outputs: Outputs, dtype: str) -> dict[str, list[str]]:
    """{attribute: names of arrays} of a run with these states and outputs."""
    seen = outputs.observed.names
    ledger = [*LEDGER, *(name for name in outputs.types(dtype) if name not in seen)]
    return {"states": list(layout.names), "observables": list(seen), "ledger": ledger}


def create_ensemble(path: Path, manifest: Manifest, *, overwrite: bool = False) -> None:
    """Creates the ensemble's folder at path, with inputs and empty result arrays. It is written beside path and then renamed.

    A run that another process created at path meanwhile stays, unless overwrite is given. Raises OSError if the disk refuses.
    """
    work = temporary_path(path)
    design, count = manifest.design, manifest.design.count
    labels = {name: label for name, (label, _) in manifest.labels.items()}
    sample = manifest.outputs.arrays(manifest.outputs.chunk(1, len(manifest.times), manifest.layout.size))
    axes, types = manifest.outputs.axes(manifest.dims, manifest.layout.names), manifest.outputs.types(manifest.dtype)
    attributes = {
        RUN_MARK: RUN_FORMAT,
        **manifest.attributes,
        "members": count,
        "chunk": manifest.chunk,
        "design": design.to_plain(),
        "labels": labels,
        "identity": manifest.identity(),
        "attempts": [{}],
        **array_names(manifest.layout, manifest.outputs, manifest.dtype),
        "coordinates": " ".join(labels.values()),
    }

    def new(name: str, shape: tuple[int, ...], dtype: Any, dims: tuple[str, ...], fill: float) -> Any:
        """An array with a row for each member; its chunks are those of the ensemble, whole in the other axes."""
        chunks = (manifest.chunk, *(max(n, 1) for n in shape))
        return create_array(group, name, (count, *shape), dtype, chunks=chunks, dims=(MEMBER, *dims), fill=fill, every_chunk=True)

    try:
        group = create_group(work, to_plain(attributes))
        inputs = {PARAMS: manifest.params, INITIAL: manifest.initial}
        inputs[POINTS] = {part.name: part.points for part in design.parts if isinstance(part, Points)}
        for name, values in inputs.items():
            write_group(group, name, {key: np.asarray(value) for key, value in values.items()}, fill=0, every_chunk=True)
        times = create_array(group, TIME, manifest.times.shape, np.float64, dims=(TIME,), every_chunk=True)
        times[...] = manifest.times
        for name, shape in zip(manifest.layout.names, manifest.layout.shapes, strict=True):
            new(name, (len(manifest.times), *shape), manifest.dtype, (TIME, *manifest.dims[name]), np.nan)
        for name, (dtype, fill) in types.items():
            new(name, sample[name].shape[1:], dtype, axes[name], fill)
        for name, (dtype, fill) in {**COUNTS, "status": (np.int8, UNDONE), ATTEMPT: (np.int8, 0)}.items():
            new(name, (), dtype, (), fill)
        for part in design.parts:
            label, dims = manifest.labels[part.name]
            row = design.labels(0, 1)[part.name]
            array = new(label, row.shape[1:], row.dtype, dims, np.nan if row.dtype.kind == "f" else 0)
            if isinstance(part, Table):  # numbers of the user's; what is drawn at random is written with each chunk
                for a in range(0, count, manifest.chunk):
                    array[a : a + manifest.chunk] = np.asarray(part.table[a : a + manifest.chunk])
        if overwrite:
            publish(work, path, overwrite=True)
        else:
            try:
                work.rename(path)
            except OSError:
                if not path.exists():
                    raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
