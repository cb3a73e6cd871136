"""Places on an axis of n places beside a place i, as generated code reads them."""

from odesim.runtime.elementary import inlined


@inlined
def wrap(i: int, n: int) -> int:
    """The place i on a ring."""
    if i >= 0 and i < n:
        return i
    return (i % n + n) % n


@inlined
def clip(i: int, n: int) -> int:
    """The place that is nearest to i."""
    return max(0, min(i, n - 1))


@inlined
def on_axis(i: int, n: int) -> bool:
    """Whether the axis has the place i."""
    return i >= 0 and i < n
