"""How members are cut into chunks, and chunks into slabs of neighbours."""

from collections.abc import Iterator

from odesim.errors import ParamError


def slabs(first: int, end: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Members first to end - 1 in pieces of many chunks: asking the disk takes longer than a chunk of the ledger is."""
    step = chunk * max(1, (1 << 20) // chunk)
    for a in range(first, end, step):
        yield a, min(a + step, end)


MAX_CHUNK_BYTES = 1 << 27  # of the states of a chunk


def chunk_size(count: int, row: int) -> int:
    """Members in a chunk: 4096, or half of it again and again while rows of so many bytes do not fit."""
    size = 4096
    while size > 1 and size * row > MAX_CHUNK_BYTES:
        size //= 2
    return min(size, count)


def shard_chunks(count: int, chunk: int, shard: tuple[int, int] = (1, 1)) -> range:
    """The chunks of shard i of n: neighbours, as even as can be. Raises ParamError unless 1 <= i <= n."""
    i, n = shard
    if not 1 <= i <= n:
        raise ParamError(f"a shard i/N has 1 <= i <= N, not {i}/{n}")
    chunks = -(-count // chunk)
    return range(chunks * (i - 1) // n, chunks * i // n)
