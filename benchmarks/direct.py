"""Runs an ensemble by its engine alone, without a Dataset and the packages for it."""

from inspect import signature
from typing import Any

import odesim
from odesim.api.ensemble import ensemble_arguments, members_and_request
from odesim.ensembles.ledger import MemoryLedger, chunk_size, shard_chunks
from odesim.ensembles.members import Members
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.registry import load_model
from odesim.run.choose import make_engine, members_at_once
from odesim.run.chunks import Engine, run_chunks

RUNS = (
    "model",
    "threads",
    "progress",
    "out",
    "overwrite",
    "resume",
    "shard",
    "fail_fast",
    "arrays",
    "client",
)  # what is not of the members
MAPPINGS = ("params", "initial", "vary", "grid", "zipped")


def request_of(model: Any, **options: Any) -> tuple[Members, EnsembleRequest]:
    """(members, request) for the arguments of `odesim.ensemble`."""
    given = {name: p.default for name, p in signature(odesim.ensemble).parameters.items() if name not in RUNS} | options
    return members_and_request(load_model(model), *ensemble_arguments(**given | {name: given[name] or {} for name in MAPPINGS}))


def make_prepared(model: Any, **options: Any) -> tuple[Members, Engine]:
    """(members, engine) for the arguments of `odesim.ensemble`; the engine is compiled."""
    members, request = request_of(model, **options)
    engine = make_engine(request, members)
    engine.prepare()
    return members, engine


def integrate_all(members: Members, engine: Engine) -> Chunk:
    """The Chunk of all members, integrated in memory on one thread of the processor or on the GPU."""
    count = members.source.count
    held = MemoryLedger(engine.request.allocate(count), chunk_size(count, engine.request.member_bytes))
    run_chunks(held, members, lambda _: engine, shard_chunks(count, held.chunk), at_once=members_at_once(engine))
    return held.all_members()
