"""Tasks of drawn sequences that a transformer learns: of its network, what it draws and its tests, memory and experiment follow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from odesim.base.arrays import Array, on_host
from odesim.lab.networks.transformer import Transformer, like
from odesim.lab.training.optimizers import adam
from odesim.lab.training.randomness import Draw, Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings

Watch = Callable[[Transformer, Batch], tuple[Observable, ...]]
"""(network, test batch) -> observables."""


@dataclass(frozen=True)
class Sequences:
    """A network and what it learns. draw(generator, count): sequences of one seed, of `length` tokens, with outputs at `read` of them.

    tests: the number of test sequences, of draw_test and test_length where these are others. exact(test), labels(): as of Experiment.
    other {what else takes memory: number of numbers of a seed}.
    """

    network: Transformer
    draw: Draw
    length: int
    tests: int
    watch: Watch
    read: int = 1
    draw_test: Draw | None = None
    test_length: int = 0
    exact: Callable[[Batch], Mapping[str, Array]] = lambda test: {}
    labels: Callable[[], Mapping[str, tuple[str, ...]]] = dict
    other: Mapping[str, int] = field(default_factory=dict)


def shape_settings(what: str, *, layers: int = 2, width: int, mlp: int, rate: float) -> tuple[Setting, ...]:
    """The settings of a batch of `what`, and of a transformer that descends by Adam, with these defaults."""
    return (
        Setting("batch", 64, f"{what} of an iteration", low=1),
        Setting("layers", layers, "of the transformer", low=1),
        Setting("width", width, "of the embeddings", low=1),
        Setting("mlp", mlp, "nodes of the MLP", low=0),
        Setting("heads", 2, "heads, which divide the width", low=1),
        *adam(rate),
    )


def network_of(values: Settings, vocabulary: int, **options: Any) -> Transformer:
    """The transformer of the settings that have the names of its options. Raises ParamError for heads that do not divide the width."""
    names = ("width", "layers", "mlp", "heads", "norm", "start")
    return Transformer(vocabulary, **{name: values[name] for name in names if name in values}, **options)


def errors(wrong: Callable[[Array, Array], Array], dims: tuple[str, ...], doc: str) -> Watch:
    """The costly observable `error`: wrong(outputs (R, B, P, C), targets) of the test sequences, in numpy."""

    def watch(network: Transformer, test: Batch) -> tuple[Observable, ...]:
        def error(params: Params) -> Array:
            return like(params, wrong(on_host(network.forward(params, test).outputs), test["targets"]))

        return (Observable("error", error, dims, doc, costly=True),)

    return watch


def sequence_task(name: str, doc: str, settings: tuple[Setting, ...], parts: Callable[[Settings], Sequences], steps: int) -> ReferenceTask:
    """The task whose Sequences parts(values) makes of settings; it raises ParamError for some that do not fit together."""

    def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
        of, size = parts(values), values.get("samples") or values["batch"]
        runs = ((size, of.length), (of.tests, of.test_length or of.length))
        passes = [of.network.memory(seeds=seeds, batch=n, length=T, read=T if of.network.at == "all" else of.read) for n, T in runs]
        largest = max(passes, key=lambda numbers: sum(numbers.values()))
        return {
            **largest,
            "the sequences": 6 * seeds * sum(n * T for n, T in runs),
            **{what: seeds * numbers for what, numbers in of.other.items()},
        }

    def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
        of = parts(values)
        test = Drawn(seeds, of.draw_test or of.draw, batch=0).test(of.tests)
        return Experiment(
            model=replace(of.network, extra=of.watch(of.network, test)),
            stream=Drawn(seeds, of.draw, batch=values["batch"], samples=values.get("samples", 0)),
            steps=steps,
            exact=of.exact(test),
            labels=of.labels(),
        )

    return ReferenceTask(name, doc, settings, make, memory, ("transformer",))
