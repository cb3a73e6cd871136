"""The JSON of stored runs, changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odesim.store.guard import CHECKSUM


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    """Changes the JSON of a file, as somebody who takes its checksum away."""
    said = change(json.loads(file.read_text()))
    if isinstance(said, dict) and isinstance(said.get("attributes"), dict):
        said["attributes"].pop(CHECKSUM, None)
    file.write_text(json.dumps(said))


def change_attributes(run: Path | str, **attributes: Any) -> None:
    """Other attributes of a run; None takes one away."""

    def change(said: Any) -> Any:
        both = {**said["attributes"], **attributes}
        return {**said, "attributes": {name: value for name, value in both.items() if value is not None or name not in attributes}}

    edit(Path(run, "zarr.json"), change)
