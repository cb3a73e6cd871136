"""What help() prints of a public name is what its author wrote: short names of types, at most 80 columns."""

import inspect
import pydoc
import re

import pytest

import odesim
import odesim.symbolic

NAMES = [
    (module, name)
    for module in (odesim, odesim.symbolic)
    for name in module.__all__
    if name not in ("__version__", "time", "IndexedBase")  # a text, a symbol, and a class of sympy's
]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{m.__name__}.{n}" for m, n in NAMES])
def test_a_signature_is_readable(module, name):
    """No union of sympy's or numpy's own, no module path of two dots, no quoted type, no long line; and pydoc prints it so."""
    public = getattr(module, name)
    text = str(inspect.signature(public))
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\w+\.\w+\.\w+|typing|collections|: '|-> '", text)
    assert text.splitlines()[0] in pydoc.plain(pydoc.render_doc(public))


def test_parameters_are_all_there():
    """One line a parameter, `*` before the first that must be named."""
    signature = inspect.signature(odesim.integrate)
    lines = [line.strip(" ,").split(":")[0] for line in str(signature).splitlines()[1:-1]]
    assert lines == ["model", "*", *list(signature.parameters)[1:]]
