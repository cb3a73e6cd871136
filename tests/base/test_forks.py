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


def output_of(script: str) -> list[str]:
    """The lines that a Python process with this script writes."""
    at = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", START + script], capture_output=True, text=True, cwd=at, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_children_of_a_process_with_threads() -> None:
    """Forks beside threads that integrate do so too; while another thread compiles, or draws, that is refused, and other runs go on."""
    lines = output_of("""
from odesim.plot import style
from odesim.targets import native

stop = threading.Event()

def work():
    while not stop.is_set():
        run()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
statuses = [status(run) for _ in range(4)]
stop.set()
for thread in threads:
    thread.join()
print(statuses, flush=True)  # else children write it too
solution = run()

def compiling():
    odesim.integrate(SYSTEMS["softmax"], sizes={"M": 3})

def drawing():
    np.ravel(solution.plot())[0].figure.savefig(os.devnull, format="png")

for action, module, name in (compiling, native, "_read"), (drawing, style, "rc_context"):
    inside, go_on, original = threading.Event(), threading.Event(), getattr(module, name)

    def paused(*arguments):
        inside.set()
        go_on.wait()
        return original(*arguments)

    setattr(module, name, paused)
    thread = threading.Thread(target=action)
    thread.start()
    inside.wait()
    print(status(run), os.waitstatus_to_exitcode(status(action)), flush=True)
    go_on.set()
    thread.join()
    setattr(module, name, original)
    print(status(action), flush=True)
""")
    assert lines[0] == str([0] * 4)
    for what, (said, *codes) in zip(("compiling", "drawing"), (lines[1:4], lines[4:]), strict=True):
        assert f"another thread was {what} when this process was forked" in said and codes == ["0 1", "0"]
