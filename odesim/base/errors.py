"""Exceptions of odesim, one for each layer, and helpers for messages."""

from collections.abc import Iterable
from typing import Any

MAX_WORD, MAX_SENTENCE = 200, 1000  # characters of one word of a message, and of all of it
UNESCAPED = "\n\u00a0\u2009\u202f"  # line ends and narrow spaces: they stay, though str.isprintable() refuses them


def escaped(text: str, keep: str = UNESCAPED) -> str:
    """text with control and invisible characters escaped: ESC, carriage returns, marks of direction, ...

    keep: characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class OdesimError(Exception):
    """Base class: a request that cannot be met. The message is one sentence for the user.

    Words of more than 200 characters are shortened, as are sentences of more than 1000, and control characters are escaped.
    """

    def __init__(self, sentence: str = "", *more: object) -> None:
        super().__init__(escaped(bounded(str(sentence))), *more)

    @classmethod
    def unless(cls, holds: bool, what: str, value: Any) -> None:
        """Raises it unless this holds: `what`, which says what there must be, and not this value."""
        if not holds:
            raise cls(f"{what}, not {value_text(value)}")


class SpecError(OdesimError):
    """A System is not well formed; the message shows the expression. part: (field of the System, number of the item)."""

    part: tuple[str, int | None] | None = None


class CodegenError(OdesimError):
    """A backend cannot compute an expression, or is not installed."""


class ParamError(OdesimError):
    """A parameter, size, initial value, span, grid or other argument has a wrong value."""


class ModelError(OdesimError):
    """A model does not exist, or its file cannot be used."""


class ModelWarning(UserWarning):
    """A model can be used, but its file probably has a mistake."""


class CacheWarning(UserWarning):
    """Compiled code cannot be kept; the run goes on."""


class ToleranceWarning(UserWarning):
    """A state of a run is below its absolute tolerance; the run goes on."""


class FitWarning(UserWarning):
    """Data do not determine all numbers that are fitted."""


class ClusterWarning(UserWarning):
    """A dask cluster has no workers for a run, which waits for them."""


class SolveError(OdesimError):
    """A method is unknown, or does not have the options given."""


class StoreError(OdesimError):
    """A file cannot be read or written."""


class MachineError(OdesimError):
    """What computes failed, perhaps in the middle of a run."""

    def __init__(self, sentence: str, *, stored: bool = False) -> None:
        """stored: whether the results so far are on disk."""
        super().__init__(sentence)
        self.stored = stored


class DeviceError(MachineError):
    """A GPU has too little memory, or failed."""


class ClusterError(MachineError):
    """A dask cluster cannot be reached, or lost its scheduler or its workers."""


def shorten(word: str, most: int = MAX_WORD) -> str:
    """word, or its beginning and end if it has more than `most` characters."""
    return word if len(word) <= most else f"{word[: most - most // 5]}...{word[-most // 10 :]}"


def bounded(sentence: str) -> str:
    """sentence with its long words shortened, and shortened itself: a wrong value may be a whole file."""
    return shorten(" ".join(map(shorten, sentence.split(" "))), MAX_SENTENCE)


def package_failure(error: BaseException) -> str:
    """`matplotlib does not load here: ...` of an exception that a package of others raised while it was imported; empty of another one."""
    package = (error.name or "") if isinstance(error, ImportError) else ""
    step = error.__traceback__
    while step:
        module = step.tb_frame.f_globals
        if step.tb_frame.f_code.co_name == "<module>" and module.get("__spec__") and not module["__spec__"].name.startswith("odesim"):
            package = module["__spec__"].name
            break
        step = step.tb_next
    if not package or package.startswith("odesim"):
        return ""
    return f"{package.partition('.')[0]} does not load here: {type(error).__name__}: {' '.join(str(error).split())[:MAX_WORD]}"


def failure_text(error: BaseException) -> str:
    """What a model's function raised: the text of a ValueError that is a sentence, else the class too."""
    sentence = type(error) is ValueError and " " in str(error)
    return str(error) if sentence else f"{type(error).__name__}: {error}"


def value_text(value: Any) -> str:
    """The repr of value in one line of at most 60 characters, for messages."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a foreign class may raise anything; Python refuses to print very long integers
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?` with the choice spelled most like name, or an empty string where none is like it.

    A choice a.b whose last part is name, or begins with its three letters or more, comes before those.
    """
    import difflib

    like = 0.5 if len(name) < 5 else 0.7  # mu for my and cuda for cupy, not set for noise nor theorem4 for nothere
    options = sorted(choices, key=lambda choice: (len(choice), choice))
    # adam is optimisers.adam and not edge.sam, which difflib finds nearer: the family counts as a misspelling of it
    parts = {choice: choice.rpartition(".")[2] for choice in options if "." in choice}
    matches = [choice for choice, part in parts.items() if part == name]
    matches = matches or [choice for choice, part in parts.items() if len(name) > 2 and part.startswith(name)]
    matches = matches or difflib.get_close_matches(name[:MAX_WORD], options, n=1, cutoff=like)
    return f"; did you mean {matches[0]!r}?" if matches else ""


LONGEST_LIST, LISTED = 400, 10
"""Characters of choices that are all listed; of more, so many of the nearest spellings."""


def no_such(what: str, name: str, choices: Iterable[str], where: str = "", *, lister: str = "", meant: str = "") -> str:
    """A sentence for a name that does not exist, with the choices and the nearest spelling: `no method 'rk5'; choose from ...`.

    lister: the command that lists the choices, which is named where they are many. meant: another spelling of name, nearer to the choices.
    """
    import difflib

    options = sorted(choices)
    place = f" in {where}" if where else ""
    shown = options
    if len(", ".join(options)) > LONGEST_LIST:
        shown = sorted(difflib.get_close_matches(name[:MAX_WORD], options, n=LISTED, cutoff=0.0))
    more = f" and {len(options) - len(shown)} more" if len(shown) < len(options) else ""
    listed = f"; choose from {', '.join(shown)}{more}" if options else "; there are none"
    listed = f"; `{lister}` names what there is" if more and lister else listed
    return f"no {what} {shorten(name, 60)!r}{place}{listed}{nearest(meant or name, options)}"


def counted(count: float, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 member`, `2 members`, `0.5 steps`. plural: of the noun, if it is not noun + s."""
    word = noun if count == 1 else plural or f"{noun}s"
    return f"{count:g} {word}" if isinstance(count, float) and count < 1e6 else f"{count:.0f} {word}"


def apart(*numbers: float) -> list[str]:
    """Numbers as texts of six digits, or of as many as tell those apart that differ."""
    for digits in range(6, 17):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(set(numbers)):
            return texts
    return [repr(float(number)) for number in numbers]
