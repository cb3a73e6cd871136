"""Forks beside threads that integrate, compile and draw: the child goes on, or says in a sentence what it cannot do; it never hangs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
START = """
import os, signal, sys, threading
import numpy as np
import odesim
from odesim.base.errors import OdesimError
from odesim.symbolic import System
from tests.support.systems import SYSTEMS

def run():
    return odesim.integrate("joma.nonlinear", sizes={"M": 2}, span=(0, 1))

def members():
    return odesim.ensemble("joma.nonlinear", sizes={"M": 2}, span=(0, 1), params={"mu": np.ones((30, 2))}, threads=2)

def status(child):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    signal.alarm(120)  # what hangs is ended
    try:
        child()
    except OdesimError as error:
        print(error, flush=True)
        os._exit(1)
    except BaseException as error:
        print(repr(error), flush=True)
    else:
        os._exit(0)
    os._exit(2)

run(), members()
"""


def output_of(script: str) -> str:
    """What a Python process with this script writes."""
    at = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", START + script], capture_output=True, text=True, cwd=at, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_children_of_a_process_whose_threads_integrate() -> None:
    """8 forks beside 4 threads that integrate: each child integrates too."""
    script = """
stop = threading.Event()

def work():
    while not stop.is_set():
        run()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
statuses = [status(run) for _ in range(8)]
stop.set()
print(statuses)
"""
    assert output_of(script).split("\n")[-2] == str([0] * 8)


@pytest.mark.parametrize("what", ["compiling", "drawing"])
def test_what_another_thread_had_begun_is_refused(what: str) -> None:
    """In the child of a fork while another thread compiles, or draws, that is refused; what was compiled runs."""
    script = f"""
from odesim.targets import native
from odesim.plot import style
inside, go_on = threading.Event(), threading.Event()
solution = run()

def compiling():
    odesim.integrate(SYSTEMS["softmax"], sizes={{"M": 3}})

def drawing():
    np.ravel(solution.plot())[0].figure.savefig(os.devnull, format="png")

module, name = (native, "_read") if {what!r} == "compiling" else (style, "rc_context")
original = getattr(module, name)

def paused(*arguments):
    inside.set()
    go_on.wait()
    return original(*arguments)

setattr(module, name, paused)
thread = threading.Thread(target={what})
thread.start()
inside.wait()
print(status(run), os.waitstatus_to_exitcode(status({what})), flush=True)
go_on.set()
thread.join()
setattr(module, name, original)
print(status({what}), flush=True)
"""
    lines = output_of(script).splitlines()
    assert f"another thread was {what} when this process was forked" in lines[0]
    assert lines[1:] == ["0 1", "0"]
