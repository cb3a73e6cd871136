"""Cuts members into chunks, and ranges of members into slabs of many chunks."""

from collections.abc import Iterator

from odesim.base.errors import ParamError


def slabs(first: int, end: int, chunk: int) -> Iterator[tuple[int, int]]:
    """(a, b): the members first to end - 1 in slabs of many chunks. The ledger on disk is slow to read chunk by chunk."""
    step = chunk * max(1, (1 << 20) // chunk)
    for a in range(first, end, step):
        yield a, min(a + step, end)


MAX_CHUNK_BYTES = 1 << 27  # of the states of a chunk


def chunk_size(count: int, row: int) -> int:
    """Members in a chunk: 4096, halved until they fit into MAX_CHUNK_BYTES. row: bytes of a member."""
    size = 4096
    while size > 1 and size * row > MAX_CHUNK_BYTES:
        size //= 2
    return min(size, count)


def shard_chunks(count: int, chunk: int, shard: tuple[int, int] = (1, 1)) -> range:
    """Numbers of the chunks of shard i of n, (i, n): neighbours, in shards of equal size up to one. Raises ParamError."""
    i, n = shard
    if not 1 <= i <= n:
        raise ParamError(f"a shard i/N has 1 <= i <= N, not {i}/{n}")
    chunks = -(-count // chunk)
    return range(chunks * (i - 1) // n, chunks * i // n)
