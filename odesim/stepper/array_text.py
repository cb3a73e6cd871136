"""Prints the text of a Rosenbrock step as Python on numpy arrays, for one system of any size.

The time of such a run goes to LAPACK and the right-hand side.

A row is an array of float64 that a statement makes anew; only the stages lie in one array K, so that a combination is a product with it.
The printed function is a generator: between two steps it hands out where the run stands.
"""

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np

from odesim.stepper import control
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.statements import (
    Comb,
    Do,
    Each,
    If,
    Let,
    Out,
    Right,
    Row,
    Statement,
    Sum,
    Switches,
    Take,
    While,
    copied,
    implicit_reader,
    name,
    unparsed,
    written,
)

STANDING = "code, t, y, h, steps, rejected, saved"
"""What the printed function yields."""
RUN = """
def run(K, n, PART, t0, t1, rtol, atol, longest, h0, most, fixed, rest, total, y, {operations}):
    h = 0.0
{begin}
    if code == {running}:
{first}
    yield {standing}
    while code == {running}:
{aim}
        if small:
            code = {too_small}
        else:
{step}
            if accept:
{after}
        yield {standing}
"""
OPERATIONS = ("right", "linear", "along", "eliminate", "drift", "solve", "solved", "restore", "out", "grid")
WATCHING = ("begin_events", "sample_events", "find_events", "keep_samples", "begin_laws", "watch_laws")
RULES = ("trial_step", "steepest", "first_step", "step_end", "too_small", "gustafsson", "next_step", "at_most", "moment")
KNOWN: dict[str, Any] = {
    "inf": inf, "nan": nan, "sqrt": np.sqrt, "larger": np.maximum, "add": np.add.reduce, "power": lambda x, e: x**e,
    **{rule: getattr(control, rule) for rule in RULES},
}  # fmt: skip
Run = Callable[..., Iterator[tuple[Any, ...]]]


@lru_cache(maxsize=32)
def array_run(method: Rosenbrock, switches: Switches) -> Run:
    """The printed run of a method."""
    printer, read = _Printer(), implicit_reader(method, None, switches).read
    parts = {"begin": (read("begin"), 1), "first": (read("first_looks", "first_save"), 2), "aim": (read("aim"), 2)}
    parts |= {"step": (read("step", "judge"), 3), "after": (read("search", *(["save"] if switches.saves else []), "accept"), 4)}
    words = {word: "\n".join("    " * margin + line for line in printer.lines(part)) for word, (part, margin) in parts.items()}
    numbers = {"running": 0.0, "too_small": 4.0}
    text = RUN.format(operations=", ".join((*OPERATIONS, *WATCHING)), standing=STANDING, **words, **numbers)
    names = {**KNOWN, **printer.weights}
    exec(compile(text, f"<{method.name} on arrays>", "exec"), names)
    run: Run = names["run"]
    return run


class _Printer(ast.NodeTransformer):
    """Prints statements as lines of Python. weights {name: array}: those of combinations that are known."""

    def __init__(self) -> None:
        self.weights: dict[str, Any] = {}

    def lines(self, statements: list[Statement]) -> list[str]:
        """Lines of a block; `pass` for none."""
        parts: list[list[str]] = []
        later: set[Row] = set()
        for s in reversed(statements):
            # a stage that no later statement writes is complete, and goes where combinations read it
            rows = set[Row]() if isinstance(s, If | While) else written([s])
            done = [row for row in sorted(rows - later, key=str) if isinstance(row, tuple)]
            parts.append([*self._statement(s), *(f"K[{row[1]}] = {_local(row)}" for row in done)])
            later |= rows
        return [line for part in reversed(parts) for line in part] or ["pass"]

    def _statement(self, s: Statement) -> list[str]:
        match s:
            case Let(names, value):
                return [f"{', '.join(names)} = {self._value(value)}"]
            case Sum(total, value):
                return [f"{total} = add({self._value(value)})"]
            case Right(row, time, state, keep):
                return [f"{keep} = {self._value(state)}", f"{_local(row)} = right({self._value(time)}, {keep})"]
            case Each(row, value):
                return [f"{_local(row)} = {self._value(value)}"]
            case Take(row, source, _):  # of a step that is accepted
                return [f"{_local(row)} = {_local(source)}"]
            case Out(place, value):
                return [f"out({place}, {self._value(value)})"]
            case Do(names, what, arguments):
                more = ["y", "z"] if what in ("sample_events", "find_events") else []
                call = f"{what}({', '.join([*map(self._value, arguments), *more])})"
                return [f"{', '.join(map(_local, names))} = {call}" if names else call]
            case If(test, yes, no):
                other = ["else:", *_inner(self.lines(no))] if no else []
                return [f"if {self._value(test)}:", *_inner(self.lines(yes)), *other]
            case While(test, body):
                return [f"while {self._value(test)}:", *_inner(self.lines(body))]
        raise TypeError(s)

    def _value(self, e: ast.expr) -> str:
        return unparsed(self.visit(copied(e)))

    def visit_Subscript(self, node: ast.Subscript) -> ast.Name:
        return name(f"k{unparsed(node.slice)}")

    def visit_Comb(self, node: Comb) -> ast.expr:
        span = max(j for j, _ in node.terms) + 1
        if all(isinstance(w, ast.Constant) for _, w in node.terms):
            weights = np.zeros(span)
            weights[[j for j, _ in node.terms]] = [float(unparsed(w)) for _, w in node.terms]
            text = f"w{len(self.weights)}"
            self.weights[text] = weights
        else:
            given = dict(node.terms)
            text = f"({', '.join(unparsed(given[j]) if j in given else '0.0' for j in range(span))},)"
        product = f"{text} @ K[:{span}]"
        return name(f"({node.base} + {product})" if node.base else f"({product})")


def _local(row: Row) -> str:
    return row if isinstance(row, str) else f"k{row[1]}"


def _inner(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
