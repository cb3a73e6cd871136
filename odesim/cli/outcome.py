"""Ends a command: exit codes, and one sentence on stderr for every error."""

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from odesim.base.errors import MachineError, OdesimError, bounded, escaped, nearest, package_failure

# 2 is click's and argparse's; 3 and not 1 for a run that stopped: a script tells "what there is can be used" from "nothing was done"
DONE, BUG, WRONG, STOPPED = 0, 1, 2, 3
LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def say(sentence: str) -> None:
    """Writes `odesim: sentence` to stderr, on one line."""
    with suppress(OSError):  # nobody reads it
        print(f"odesim: {escaped(bounded(' '.join(str(sentence).split())))}", file=sys.stderr, flush=True)


def exit_code(run: Callable[[], int]) -> int:
    """The code that run() returns, or that of the exception it raised, which is printed as a sentence."""
    try:
        with terminated_as_interrupted():
            return run()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as error:
        say(usage_sentence(error))
        return WRONG
    except click.ClickException as error:
        say(error.format_message())
        return WRONG
    except OdesimError as error:
        say(str(error))
        stored = isinstance(error, MachineError) and error.stored
        return STOPPED if stored or disk_full(error.__cause__) else WRONG
    except MemoryError as error:
        say(f"not enough memory: {error}" if str(error) else "not enough memory for these sizes and saved times")
        return WRONG
    except (KeyboardInterrupt, click.Abort):
        say("interrupted; nothing more was written")
        return STOPPED
    except BrokenPipeError:  # the reader has seen enough
        return DONE
    except OSError as error:
        if error.errno in LIMITS:
            say(f"the system refuses what this needs: {error.strerror}")
            return WRONG
        if not disk_full(error):
            return _bug(error)
        say(f"cannot write{f' {error.filename}' if error.filename else ''}: {error.strerror}")
        return STOPPED
    except Exception as error:
        return _bug(error)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Treats SIGTERM, which a batch system sends before it kills, like Ctrl-C: computed results are kept."""
    # a scheduler such as Slurm sends SIGTERM half a minute before it kills
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which raises KeyboardInterrupt
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def disk_full(error: BaseException | None) -> bool:
    """Whether an error says that a file could not grow: a full disk, a quota, a limit."""
    return isinstance(error, OSError) and error.errno in FULL


def open_streams() -> None:
    """Opens /dev/null for a stdin, stdout or stderr that is closed (`>&-`).

    Else the next file that is opened would take its number, and what is printed would go there, or to the other stream.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, it is there to the end


def release(code: int) -> int:
    """Flushes stderr and stdout; returns code, or STOPPED if stdout had no room. A closed pipe is no error: its reader has seen enough."""
    try:
        sys.stderr.flush()
    except OSError:  # nobody can be told; Python itself would end with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        if code != STOPPED:  # else it has been said: what is left in the buffer has no room either
            say(f"cannot write the output: {error.strerror or error}")
        code = code or STOPPED
    else:
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is left to the end of the interpreter, which would complain
    return code


OF_OTHERS = {
    **dict.fromkeys(("dt", "h", "stepsize"), "step"),
    **dict.fromkeys(("tspan", "tmax", "tend", "time", "duration", "T"), "span"),
    **dict.fromkeys(("solver", "integrator"), "method"),
    **dict.fromkeys(("param", "parameter", "p"), "set"),
    **dict.fromkeys(("y0", "x0", "u0", "initial", "ic"), "init"),
    **dict.fromkeys(("output", "o", "file"), "out"),
    **dict.fromkeys(("epochs", "iterations", "iters"), "steps"),
    **dict.fromkeys(("teval", "saveat", "points"), "save"),
    **dict.fromkeys(("workers", "jobs", "j", "processes"), "threads"),
    **dict.fromkeys(("device", "gpu"), "backend"),
    **dict.fromkeys(("samples", "runs", "n"), "members"),
}
"""What options are called elsewhere, without dashes, and what stands here: by its letters --dt would be --dtype."""


def usage_sentence(error: click.UsageError) -> str:
    """A usage error of click as a sentence of ours: what is wrong, the nearest spelling, where help is."""
    where = error.ctx.command_path if error.ctx else "odesim"
    command = error.ctx.info_name if error.ctx else where
    see = f"; see `{where} --help`" if error.ctx else ""
    if isinstance(error, click.NoSuchOption) and error.ctx:
        from difflib import get_close_matches

        words = [name.removeprefix("--") for p in error.ctx.command.get_params(error.ctx) for name in p.opts]
        name = error.option_name.lstrip("-")
        meant = OF_OTHERS.get(name.replace("-", "").replace("_", ""), "")
        spelled = nearest(meant if meant in words else name, words).replace("'", "'--", 1)
        root = error.ctx.find_root()
        # --task of list is its --tasks, not the option of another command
        slip = spelled if meant in words or get_close_matches(name, words, cutoff=0.85) else ""
        hint = model_part(root.obj or [], error.option_name, words) or slip or elsewhere(root, error.option_name) or spelled or see
        return f"no option {error.option_name!r} of {where}{hint}"
    if isinstance(error, click.MissingParameter) and error.param and error.ctx:
        option = f"{error.param.opts[0]} " if isinstance(error.param, click.Option) else ""
        return f"{command} needs {option}{error.param.make_metavar(error.ctx)}{see}"
    if isinstance(error, click.BadParameter) and error.param:
        return f"{max(error.param.opts, key=len)}: {_start_small(error.message)}"
    if error.ctx and (extra := re.search(r"\((\w+)=(\S*)\)$", error.message)):
        words = [name.removeprefix("--") for p in error.ctx.command.get_params(error.ctx) for name in p.opts]
        see = model_part([*(error.ctx.find_root().obj or []), f"--{extra[1]}={extra[2]}"], f"--{extra[1]}", words) or see
    return f"{_start_small(error.format_message())}{'' if 'choose from' in error.message else see}"


def model_part(words: Sequence[str], option: str, known: Collection[str]) -> str:
    """How a command with the options `known` gives a number of the model among its words: `--set beta=3`; empty for another option.

    A model file is not executed: an option that is spelled like none of these may be a parameter of it.
    """
    from difflib import get_close_matches

    from odesim.inputs.registry import is_path, list_models, load_model

    name = option.removeprefix("--")
    model = next((word for word in words[1:] if is_path(word) or word in list_models()), "")
    if "set" not in known or not model or not name.isidentifier():
        return ""
    after = next(([*word.split("=", 1)[1:], *words[i + 1 : i + 2]] for i, word in enumerate(words) if word.split("=")[0] == option), [])
    value = after[0] if after and not after[0].startswith("--") and ":" not in after[0] else "VALUE"
    if is_path(model):
        return "" if get_close_matches(name, known, cutoff=0.7) else f"; if it is a parameter of the model: --set {name}={value}"
    system = load_model(model)
    parts = (("set", "parameter", [p.name for p in system.params]), ("init", "state", system.states), ("size", "size", system.size_names))
    for flag, kind, names in parts:
        if name in names and flag in known:
            return f"; it is a {kind} of {model}: --{flag} {name}={value}"
    return ""


def elsewhere(root: click.Context, option: str) -> str:
    """Which other commands have this option; empty where none does, or half of all do."""
    if not isinstance(root.command, click.Group):
        return ""
    commands = {name: root.command.get_command(root, name) for name in root.command.list_commands(root)}
    have = [name for name, c in commands.items() if c and any(option in p.opts for p in c.get_params(root) if p.name != "help")]
    return f"; it is an option of {', '.join(have)}" if have and 2 * len(have) < len(commands) else ""


def _start_small(sentence: str) -> str:
    text = sentence.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _bug(error: BaseException) -> int:
    if sentence := package_failure(error):
        say(sentence)
        return WRONG
    import traceback

    say(f"this is a bug in odesim; please report it with the command and the lines below: {type(error).__name__}: {error}")
    traceback.print_exception(error)
    return BUG
