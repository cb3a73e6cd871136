"""The task corpus: predict the next token of a real text from its context.

The text is `pydoc_data.topics` of this CPython, or one's own. Tokens are words in lower case, that is letters, digits and underscores,
and punctuation marks, a run of one mark once; the vocabulary is `<unk>`, then the most frequent tokens. Documents end at a NUL, and
no window crosses their ends. The last part of the text, `validation` of it, is kept out of the training.

Model yz (tian2023scan): a class is a pair of a query and its next word, the num_next most frequent pairs with different next words
and at most num_query queries; its contexts are the length - 1 tokens before the query, and the training draws from its real ones.
P, psi and p are counted over all of them: with M they are parameters of scan_snap.full, whose contexts are infinite. Model
transformer: the next token after each of `length` places.

Real contexts of some tens of tokens are far from infinite: attention leaves all but the few tokens that nearly every context has, and
the System is right about which way the attention of a class to a token moves no more often than a coin. contexts=drawn, with more and
more tokens, and contexts=infinite lead from the one to the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odesim.base.arrays import check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.data.corpus_classes import PairClasses, pair_classes, windows
from odesim.reference.data.corpus_streams import BLOCK, MAX_VALIDATION, CorpusContexts, DrawnContexts, Stretches, population_batch
from odesim.reference.data.text import Corpus, digest, encode, pydoc_topics
from odesim.reference.one_layer.model import DECODERS, YZ
from odesim.reference.protocols import Batch, Experiment, Model, Observable, Optimizer, Params, Setting, Stream
from odesim.reference.transformer.architecture import Architecture
from odesim.reference.transformer.memory import transformer_memory
from odesim.reference.transformer.model import Transformer

CONTEXTS = ("windows", "drawn", "infinite")
MOST_LABELS = 10_000


@dataclass(frozen=True, eq=False)
class CorpusYZ(YZ):
    """The one-layer model YZ with extra observables."""

    extra: tuple[Observable, ...] = ()

    @property
    def observables(self) -> tuple[Observable, ...]:
        return (*super().observables, *self.extra)


def validation_loss(model: Model, batch: Batch) -> Observable:
    """The observable loss_validation: the loss (R,) of a batch that is not trained on."""

    def loss(params: Params) -> Any:
        return model.loss_and_gradients(params, batch)[0]

    return Observable("loss_validation", loss, (), "loss of text that is not trained on", costly=True)


@dataclass(frozen=True)
class CorpusTask:
    """The task corpus: the next token of a real text."""

    name: str = "corpus"
    doc: str = "the next word of a real text: frequent pairs in the one-layer model (tian2023scan), or every token in a transformer"
    models: tuple[str, ...] = ("yz", "transformer")
    settings: tuple[Setting, ...] = (
        Setting("text", "", "the text itself; none: the help of this Python, pydoc_data.topics"),
        Setting("vocabulary", 1000, "tokens, <unk> for all others among them; all of a text that has fewer", low=2),
        Setting("length", 32, "tokens of a window, the query included", low=2),
        Setting("validation", 0.1, "fraction at the end of the text that is not trained on", low=0.0, high=0.9),
        Setting("num_next", 20, "yz: next words, one for each class", low=1),
        Setting("num_query", 5, "yz: queries at most", low=1),
        Setting("contexts", "windows", "yz: those of the text, or tokens drawn from P, or infinite ones", choices=CONTEXTS),
        Setting("drawn", 0, "yz: tokens of a drawn context; 0: length - 1", low=0),
        Setting("batch", 128, "windows of a batch", low=1),
        Setting("eta_Y", 1.0, "yz: learning rate of the decoder", low=0.0),
        Setting("eta_Z", 0.1, "yz: learning rate of the attention", low=0.0),
        Setting("decoder", "vanilla", "yz: gradient of Y: its own, or decorrelated (Lemma 3)", choices=DECODERS),
        Setting("normalize", True, "yz: what is attended is divided by its length"),
        Setting("residual", False, "yz: the query is added to what it attends"),
        Setting("optimizer", "auto", "how it descends; auto: sgd for yz, adam for transformer", choices=("auto", "sgd", "adam", "adamw")),
        Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
        Setting("lr", 1e-3, "transformer: learning rate", low=0.0),
        Setting("width", 64, "transformer: of the embeddings", low=1),
        Setting("layers", 2, "transformer: blocks", low=0),
        Setting("heads", 2, "transformer: heads, which divide the width", low=1),
        Setting("mlp", 128, "transformer: nodes of the MLP of a block", low=0),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: classes or a forward pass, parameters, batches; without the text."""
        batch, length, M = values["batch"], values["length"], values["vocabulary"]
        if model == "transformer":
            sizes = {name: values[name] for name in ("width", "layers", "mlp", "heads")}
            transformer_numbers = transformer_memory(
                Architecture(M, **sizes), seeds=seeds, batch=max(batch, 100), length=length, read=length
            )
            return {**transformer_numbers, "the batches": seeds * batch * (BLOCK + 4 * length)}
        K = values["num_next"]
        return {
            "the classes": 6 * K * M,
            "Y, Z and their gradients": seeds * M * (4 * (K + 1) + 6 * min(values["num_query"], K)),
            "the batches": seeds * max(batch, MAX_VALIDATION) * (BLOCK // 8 + 3 * min(M, K * length) + 4 * K + 2 * length),
        }

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError if the text is too short or has too few words or pairs."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        text = values["text"] or pydoc_topics()
        corpus = encode(text, values["vocabulary"])
        settings = {name: value for name, value in values.items() if name != "text"}
        clipped = {"vocabulary": len(corpus.words)}  # a text may have fewer words than asked for
        config = settings | clipped | {"text_sha256": digest(text), "text_length": len(text)}
        return (transformer if model == "transformer" else one_layer)(corpus, values, config, seeds, dtype)


def one_layer(corpus: Corpus, values: Mapping[str, Any], config: Mapping[str, Any], seeds: Sequence[int], dtype: str) -> Experiment:
    """The experiment with the one-layer model on classes of the text; tokens of P and columns of Z are those of the vocabulary."""
    if values["contexts"] == "infinite" and len(seeds) != 1:
        raise ParamError(f"contexts=infinite train without chance, so that one seed is all there is, not {len(seeds)}")
    if values["drawn"] and values["contexts"] != "drawn":
        raise ParamError(f"drawn={values['drawn']} needs contexts=drawn, not {values['contexts']}")
    sizes = {name: values[name] for name in ("length", "num_next", "num_query")}
    pairs = pair_classes(corpus, **sizes, fraction=values["validation"])
    stream = CorpusContexts(pairs, seeds, values["batch"], dtype)
    model = CorpusYZ(
        pairs.P,
        pairs.psi,
        pairs.p,
        float(len(corpus.words)),
        support=stream.support,
        query_rows=pairs.queries if values["residual"] else None,
        **{name: values[name] for name in ("decoder", "normalize", "residual")},
    )
    rates = {"Y": values["eta_Y"], "Z": values["eta_Z"]}
    classes: dict[str, Any] = {"P": pairs.P, "psi": pairs.psi, "p": pairs.p, "M": model.M}
    descent = optimizer(values, "sgd", rates)
    as_assumed = values["normalize"] and not values["residual"] and values["decoder"] == "vanilla" and descent.name == "sgd"
    return Experiment(
        task=TASK.name,
        config=config,
        seeds=tuple(seeds),
        model=replace(model, extra=(validation_loss(model, stream.validation()),)) if values["validation"] > 0 else model,
        stream=contexts(pairs, stream, values, dtype),
        optimizer=descent,
        steps=1000,
        vocabulary=len(corpus.words),
        exact=classes | {"queries": pairs.queries, "next": pairs.next},
        theory={"scan_snap.full": {**classes, "eta_Y": values["eta_Y"], "eta_Z": values["eta_Z"]}} if as_assumed else {},
        labels=labels_of(corpus.words, pairs),
    )


def labels_of(words: Sequence[str], pairs: PairClasses) -> dict[str, tuple[str, ...]]:
    """The words of tokens, queries and classes (query and next word); none where the vocabulary is too large to be stored by name."""
    if len(words) > MOST_LABELS:
        return {}
    queries, after = ([words[i] for i in ids] for ids in (pairs.queries, pairs.next))
    return {"l": tuple(words), "m": tuple(queries), "n": tuple(f"{queries[q]} {word}" for q, word in zip(pairs.psi, after, strict=True))}


def contexts(pairs: PairClasses, windows: CorpusContexts, values: Mapping[str, Any], dtype: str) -> Stream:
    """The Stream for the setting `contexts`."""
    if values["contexts"] == "infinite":
        return population_batch
    if values["contexts"] == "drawn":
        return DrawnContexts(pairs, windows.support, windows.seeds, values["batch"], values["drawn"] or values["length"] - 1, dtype)
    return windows


def transformer(corpus: Corpus, values: Mapping[str, Any], config: Mapping[str, Any], seeds: Sequence[int], dtype: str) -> Experiment:
    """The experiment with a transformer that predicts every next token in stretches of the text."""
    stream = Stretches(*windows(corpus, values["length"], values["validation"]), seeds, values["batch"])
    options = {name: values[name] for name in ("width", "layers", "heads", "mlp")}
    model = Transformer(len(corpus.words), positions=values["length"], at="all", **options)
    if values["validation"] > 0:
        validation = stream.validation()
        model = replace(model, watch=validation, extra=(validation_loss(model, validation),))
    return Experiment(
        task=TASK.name,
        config=config,
        seeds=tuple(seeds),
        model=model,
        stream=stream,
        optimizer=optimizer(values, "adam", dict.fromkeys(sorted(set(model.groups.values())), values["lr"])),
        steps=1000,
        vocabulary=len(corpus.words),
    )


def optimizer(values: Mapping[str, Any], auto: str, rates: Mapping[str, float]) -> Optimizer:
    """The Optimizer of the settings; `auto` names the one for optimizer=auto."""
    name = auto if values["optimizer"] == "auto" else values["optimizer"]
    return Optimizer(name, rates, momentum=values["momentum"] if name == "sgd" else 0.0)


TASK = CorpusTask()
