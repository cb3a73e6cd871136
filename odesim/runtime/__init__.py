"""What generated code calls: elementary and special functions, sums, matrices, memory; the same bits on every machine."""
