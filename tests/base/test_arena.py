"""Arrays of one block of memory: none reaches into another, and those of one loop do not share their place in a page."""

import numpy as np

from odesim.base.arrays import LINE, PAGE, Arena


def test_arrays_of_a_block() -> None:
    """Random sizes: in order, apart, each on a cache line of the block, large ones at a place in a page of their own."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = {turn: int(n) for turn, n in enumerate(rng.choice([0, 8, 200, PAGE - 8, PAGE, 5 * PAGE + 8], 9))}
        arena, table = Arena(sizes), np.zeros(10, np.int64)
        block, starts = arena.memory(table), arena.starts
        assert table.tolist() == [*(block.ctypes.data + start for start in starts.values()), 0]
        assert block.ctypes.data % LINE == 0 and not [start for start in starts.values() if start % LINE]
        ends = [starts[turn] + n for turn, n in sizes.items()]
        assert all(end <= start for end, start in zip(ends, [*list(starts.values())[1:], block.size], strict=True))
        places = [starts[turn] % PAGE for turn, n in sizes.items() if n >= PAGE]
        assert len(set(places)) == len(places)
