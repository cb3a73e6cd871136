"""Numbers that compiled functions share with generated text and with whole arrays: to read them loads no compiler."""

BLOCK = 1024
"""A sum is cut into blocks of so many numbers."""
SEQUENCE, LANES = 64, 32
"""Up to SEQUENCE numbers of a block are added in sequence; more go to LANES partial sums."""
LOST = 256.0
"""An inverse is kept while 1 + 1 / (LOST condition) is above 1."""
SMALL = 15
"""Up to this size of a matrix, that of lanes, growth is below what is refused."""
GROWN = 1024.0
"""So many roundings of |A| |X| |v| are an error of growth: without it there are at most some fifty."""
SEPARATE = "separate_pass"
"""A part of the names of functions that are never inlined."""
LOOPS = "loops."
"""The beginning of the names of functions that get all passes, in a module where others get few."""
