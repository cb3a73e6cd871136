"""Which cases of a law run by default: each value of each factor once."""

from collections.abc import Hashable, Iterable, Sequence

import pytest


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Gives the marker slow to the cases that the cover of their law leaves out.

    What is marked by hand stays out of it. Cases on a GPU have a cover of their own: where there is none they are skipped.
    """
    laws: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        if not any(item.get_closest_marker(name) for name in ("slow", "browser")):
            laws.setdefault((item.nodeid.partition("[")[0], item.get_closest_marker("gpu") is not None), []).append(item)
    for law in laws.values():
        first = law[0].get_closest_marker("first")
        kept = cover([values(item) for item in law], first.args[0] if first else None)
        for k, item in enumerate(law):
            if k not in kept:
                item.add_marker(pytest.mark.slow)


def values(item: pytest.Item) -> tuple[Hashable, ...]:
    """A case's value of each factor. A factor is a `parametrize`, whose rows are the values, or a fixture with parameters."""
    params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    rows = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        rows.append(tuple(id(params.pop(name)) for name in names))
    return (*rows, *map(id, params.values()))  # one object in all cases of a product, which need not be hashable


def cover(cases: Sequence[tuple[Hashable, ...]], first: int | None = None) -> set[int]:
    """The places of few cases, (value of each factor, ...), in which every value occurs; of each factor the first values only, if so told.

    Greedy: the next case is one with the most values that are missing still, and of these the one whose values stand first in their
    tables. So a table that begins with what is cheap has dear values run beside cheap ones.
    """
    if not any(cases):
        return set(range(len(cases)))
    tables = [{value: k for k, value in enumerate(dict.fromkeys(factor))} for factor in zip(*cases, strict=True)]
    rows = [[table[value] for table, value in zip(tables, case, strict=True)] for case in cases]
    cheapest_first = sorted((k for k, row in enumerate(rows) if first is None or max(row) < first), key=lambda k: sum(rows[k]))
    seen: set[tuple[int, int]] = set()
    chosen = set()
    for gain in range(len(tables), 0, -1):  # what a case adds never grows: one pass for each number of values is the greedy choice
        for k in cheapest_first:
            if len(missing := set(enumerate(rows[k])) - seen) == gain:
                chosen.add(k)
                seen |= missing
    return chosen
