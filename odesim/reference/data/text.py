"""Converts text to token numbers: the most frequent words and punctuation marks, `<unk>` for others."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError

UNK = "<unk>"
END = "\0"  # of a document
# a word is letters, digits and underscores; any other visible character is a mark, and a run of one mark is a single one
TOKEN = re.compile(r"(\w+)|([^\w\s\x00-\x1f\x7f])\2*")


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as numbers. words (M,): `<unk>`, then the most frequent first. ids (n,): its tokens; document (n,): their documents."""

    words: tuple[str, ...]
    ids: Array
    document: Array


def pydoc_topics() -> str:
    """The text of Python's help, `pydoc_data.topics`: names and texts of topics as documents, in alphabetical order."""
    from pydoc_data.topics import topics

    return END.join(f"{name}{END}{topics[name]}" for name in sorted(topics))


def digest(text: str) -> str:
    """The sha256 of the text in hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tokens(text: str) -> Iterator[str]:
    """Yields the tokens of the text in lower case: words and punctuation marks; a repeated mark is one token."""
    for match in TOKEN.finditer(text.lower()):
        yield match[1] or match[2]


def is_word(token: str) -> bool:
    """Whether a token is a word; false for marks and `<unk>`."""
    return token[0] == "_" or token[0].isalnum()


def encode(text: str, vocabulary: int) -> Corpus:
    """The Corpus of a text with the vocabulary - 1 most frequent tokens, or all of a text that has fewer; ties are in alphabetical order.

    Raises ParamError if the text has no tokens.
    """
    documents = [list(tokens(part)) for part in text.split(END)]
    counts = Counter(word for document in documents for word in document)
    if not counts:
        raise ParamError(f"the text has no tokens: it must hold words or punctuation marks, not {len(text)} characters of white space")
    words = (UNK, *sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 1])
    number = {word: i for i, word in enumerate(words)}
    ids = np.array([number.get(word, 0) for document in documents for word in document])
    return Corpus(words, ids, np.repeat(np.arange(len(documents)), [len(document) for document in documents]))
