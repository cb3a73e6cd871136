"""Functions that generated code calls: sums, elementary functions, blocks of arrays, memory."""
