"""No function takes more than seven arguments: more of them travel in a dataclass."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "odesim"
MOST = 7
PUBLIC = ("check_arguments", "click.command")  # decorators of what people call, whose arguments are what they can ask for
KERNELS = ("helper", "loops", "exported", "kernel")  # decorators of numeric kernels, which take numbers and addresses one by one
# function -> why it takes more; one that takes no more is to leave the list
ALLOWED = {
    "runtime/stages.py combine_block": "a numeric kernel, compiled in two modes",
    "stepper/callback.py _stage": "a C function, whose arguments BoundSystem fixes",
    "stepper/callback.py _combine": "a C function, whose arguments BoundSystem fixes",
    "stepper/linear_steps.py combined": "a C function, whose arguments BoundSystem fixes",
    "run/rounds.py __init__": "what the lanes give to rounds: their arrays and their two functions",
    "store/chunks.py create_array": "what zarr's own takes, with the defaults of all stores",
    "base/datasets.py plot": "what people call, with the choices of a picture",
    "symbolic/system.py Map": "what people call, with the parts of a System",
    "stepper/tableau.py make_method": "the columns of a tableau",
    "stepper/tableau.py make_rosenbrock": "the columns of a table",
}


def count(node: ast.FunctionDef) -> int:
    """How many arguments a function takes: self and cls not counted, *args and **kwargs one each."""
    a = node.args
    plain = [x.arg for x in (*a.posonlyargs, *a.args)]
    return len(plain) - (plain[:1] in (["self"], ["cls"])) + len(a.kwonlyargs) + bool(a.vararg) + bool(a.kwarg)


def long_lists(text: str) -> Iterator[str]:
    """Names of functions with more than MOST arguments that are neither public nor kernels."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and count(node) > MOST:
            decorators = [ast.unparse(d) for d in node.decorator_list]
            if not any(d.startswith((*PUBLIC, *KERNELS)) for d in decorators):
                yield node.name


def test_nothing_takes_more_than_seven_arguments():
    """But for what people call, numeric kernels, and a short list with reasons, none of which is out of date."""
    found = {f"{path.relative_to(ROOT)} {name}" for path in sorted(ROOT.rglob("*.py")) for name in long_lists(path.read_text())}
    assert found <= ALLOWED.keys(), f"put some of their arguments into a dataclass: {sorted(found - ALLOWED.keys())}"
    assert found >= ALLOWED.keys(), f"take no more than {MOST}: {sorted(ALLOWED.keys() - found)}"


def test_the_count_is_right():
    """self is none, *args and **kwargs are one each, keyword-only arguments count."""
    code = "class A:\n def f(self, a, b, /, c, *d, e, g, **h): pass\n def k(self, a, b, c, d, *, e, f, g, h): pass"
    nodes = {n.name: n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef)}
    assert (count(nodes["f"]), count(nodes["k"]), list(long_lists(code))) == (7, 8, ["k"])
