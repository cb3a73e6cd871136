"""The manifest of a stored ensemble, and what is restored from it: members, request, and the engine of each attempt."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import Any

from odesim.api.ensemble_request import as_design, axis_names, label_of, make_ensemble_request
from odesim.api.request import with_sensitivities
from odesim.base.errors import ParamError, StoreError
from odesim.base.options import options_of, versions
from odesim.ensembles.ledger import chunk_size
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.request import METHOD_NAMES, EnsembleRequest, meanings
from odesim.inputs.events import with_stored_events
from odesim.inputs.registry import stored_model
from odesim.inputs.schema import make_extent
from odesim.run.choose import AnyEngine, engine_key, make_engine
from odesim.run.chunks import Engine
from odesim.run.engines import HandOver
from odesim.run.lanes import LaneEngine
from odesim.run.looped_lanes import LoopLaneEngine
from odesim.run.problem import dimensions
from odesim.stepper.codes import STATUSES
from odesim.store.ensemble import EnsembleStore
from odesim.store.manifest import Manifest, array_names
from odesim.symbolic.system import System


def restore(
    store: EnsembleStore, model: str | PathLike[str] | System | None = None, *, same_code: bool = True
) -> tuple[Members, EnsembleRequest, AnyEngine]:
    """Members, request and engine of a stored ensemble. Raises an OdesimError if they cannot be restored.

    model: the file of the model, where it was one, or the System. same_code: nor may what integrates be other code than then.
    """
    attributes = store.attributes
    if attributes.get("ref") is None and not isinstance(model, System):
        raise ParamError(f"{store.path} was made in Python from a System: call odesim.ensemble with it again, and resume=True")
    plain = model if isinstance(model, System) else stored_model(store.path, attributes, model)
    system = with_stored_events(store.path, plain, attributes)
    system, _ = with_sensitivities(system, attributes.get("sensitivities", ()), ())
    params, initial = store.shared()
    numbers = {"sizes": attributes["sizes"], "span": tuple(attributes["span"]), "seed": attributes["seed"]}
    try:
        shapes = shapes_of(system, store)
        members = make_members(system, params, initial, source=store.design.with_shapes(shapes), **numbers)
        request = make_ensemble_request(system, members, options_of(attributes), **outputs_of(attributes))
    except (KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{store.path} is damaged and cannot be read: an attribute is not as odesim writes it") from error
    for key, names in array_names(request.layout, request.outputs, request.dtype).items():
        if attributes.get(key) != names:
            raise StoreError(f"{store.path} is damaged: its attribute {key!r} does not name the arrays of {system.name}")
    request = replace(request, times=store.times)
    engine = make_engine(request, members)
    # the key is a digest of the generated text and of what compiles it. A resumed run must end with the bits of one that was never
    # stopped, so half of a run by other code is refused; rerun, which compares, is not
    if same_code and engine_key(engine) != attributes.get("kernel"):
        raise ParamError(
            f"{store.path} was computed by other code ({attributes.get('kernel')}, now {engine_key(engine)}): "
            "the model, odesim or this machine is another one, and its bits would be others; odesim rerun says how far they are"
        )
    if same_code:
        check_unchanged(store, {"lanes": has_lanes(engine)})
    return members, request, engine


def names_of_codes() -> dict[str, Any]:
    """The attributes that say which status and which method a stored number stands for."""
    return {"status_names": [str(s) for s in STATUSES], "method_names": list(METHOD_NAMES)}


def has_lanes(engine: AnyEngine) -> int:
    """1 if the engine integrates members in lanes of the processor, else 0."""
    return int(isinstance(engine, LaneEngine | LoopLaneEngine | HandOver))


def check_unchanged(store: EnsembleStore, written: Mapping[str, Any]) -> None:
    """Raises StoreError unless the run has these attributes, which this version would write."""
    for name, value in written.items():
        if store.attributes.get(name) != value:
            raise StoreError(f"{store.path} was changed: its attribute {name!r} is not what this version of odesim writes")


def shapes_of(system: System, store: EnsembleStore) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the values that each member has of its own."""
    shapes = dict(zip(store.layout.names, store.layout.shapes, strict=True))
    for part in store.design.parts:
        if part.name not in shapes:
            param = next((p for p in system.params if p.name == part.name), None)
            if param is None:
                raise StoreError(f"{store.path} varies {part.name}, which {system.name} does not have: the model is another one")
            shapes[part.name] = tuple(make_extent(extent).value(store.attributes["sizes"]) for extent in param.shape)
    return shapes


def outputs_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """{option: value} of the outputs that are stored beside the states of members, for make_ensemble_request."""
    return {"observe": attributes["kept"]["observe"], "max_events": attributes["kept"]["most"]}


def make_manifest(system: System, original: Mapping[str, Any], members: Members, engine: AnyEngine) -> Manifest:
    """The manifest of an ensemble, written before anything is computed."""
    design, shared, request = as_design(members), members.shared, engine.request
    about = {
        "model": system.name,
        **original,
        "source": " ".join(filter(None, (system.source.key, system.source.where, system.source.note))),
        "time_unit": system.time,
        "sizes": shared.sizes,
        "span": [shared.t0, shared.t1],
        **request.options.numbers(),
        **({"auto": request.auto} if request.auto else {}),
        "kept": request.outputs.to_plain(),
        "sensitivities": list(system.sensitivities),
        "kernel": engine_key(engine),
        "lanes": has_lanes(engine),
        "versions": versions(),
        **names_of_codes(),
        "status_meanings": meanings(system, request.options),
    }
    varying = {*design.names, *(slot.name for slot in members.dependent)}
    labels = {}
    for name, values in design.labels(0, 1).items():
        label = label_of(system, name)
        labels[name] = (label, axis_names(system, name, label, values.ndim - 1))
    return Manifest(
        attributes=about,
        design=design,
        params={name: value for name, value in shared.params.items() if name not in varying},
        initial={name: value for name, value in shared.initial.items() if name not in varying},
        times=request.times,
        layout=request.layout,
        dtype=request.dtype,
        outputs=request.outputs,
        chunk=chunk_size(design.count, request.member_bytes),
        dims=dimensions(system),
        labels=labels,
    )


def check_members(members: Members, chunk: int) -> None:
    """Raises ParamError if any member has a value outside its domain, before anything is written."""
    for first in range(0, members.source.count, chunk):
        members.chunk(first, min(first + chunk, members.source.count))


def engines(store: EnsembleStore, members: Members, first: Any) -> Callable[[int], Engine]:
    """The engine of each attempt, compiled when it is first used."""

    @cache
    def engine(attempt: int) -> Engine:
        candidate = first if attempt == 0 else make_engine(attempted(first.request, store.attributes["attempts"][attempt]), members)
        candidate.prepare()
        return candidate

    return engine


def attempted(request: EnsembleRequest, changes: Mapping[str, Any]) -> EnsembleRequest:
    """The request of a later attempt. changes: options, and by which rule members have their methods."""
    options = {name: value for name, value in changes.items() if name != "auto"}
    return replace(request.changed(**options), auto=changes.get("auto", request.auto))
