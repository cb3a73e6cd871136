"""Operations as data: their text, and what is read from them."""

from hypothesis import given
from hypothesis import strategies as st

from odesim.ir.scalars import COMPARISONS, Operand, Operation, needed, parsed, printed, renamed, words_of

ATOMS = st.sampled_from(["x0", "y1", "p12", "t", "1.0", "-2.5", "1e-300", "nan"])


def with_parts(parts: st.SearchStrategy[Operand]) -> st.SearchStrategy[Operand]:
    """Every kind of operation on these parts; a minus sign before a name, for that of a number is the number's own."""
    signs = st.builds(Operation, st.sampled_from(["+", "-", "*", "/", *COMPARISONS]), st.tuples(parts, parts))
    truths = st.builds(Operation, st.sampled_from(["and", "or"]), st.lists(parts, min_size=2, max_size=3).map(tuple))
    minus = parts.filter(lambda a: not isinstance(a, str) or a[0].isalpha()).map(lambda a: Operation("-", (a,)))
    choices = st.tuples(parts, parts, parts).map(lambda three: Operation("if", three))
    calls = st.builds(Operation, st.sampled_from(["exp", "powi", "maximum"]), st.lists(parts, min_size=1, max_size=2).map(tuple))
    return st.one_of(signs, truths, minus, choices, calls)


EXPRESSIONS = st.recursive(ATOMS, with_parts, max_leaves=12)


@given(EXPRESSIONS)
def test_python_reads_the_text_as_what_was_printed(operand):
    """Brackets stand wherever they are needed: the text, read by Python's grammar, is the same operation again."""
    assert parsed(str(operand)) == operand


@given(EXPRESSIONS)
def test_new_names_stand_where_the_old_ones_stood(operand):
    """Renaming and back is nothing, and there is no old name between; functions and numbers stay."""
    there = {"x0": "a0", "y1": "t", "t": "y1"}
    moved = renamed(operand, there)
    assert renamed(moved, {new: old for old, new in there.items()}) == operand
    assert list(words_of(moved)) == [there.get(word, word) for word in words_of(operand)]


def test_what_names_need():
    """The lines that a name depends on, in their order, and no others."""
    sums = {"x0": Operation("+", ("y0", "p0")), "x1": Operation("exp", ("y1",)), "x2": Operation("*", ("x0", "x0"))}
    code = {**sums, "x3": Operation("if", (Operation(">", ("x1", "0.0")), "x2", "x0"))}
    assert printed(needed(code, ["x2"])) == ["x0 = y0 + p0", "x2 = x0 * x0"]
    assert list(needed(code, ["x3", "1.0"])) == list(code) and not needed(code, ["y0"])
