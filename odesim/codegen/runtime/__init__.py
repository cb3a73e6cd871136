"""What generated code calls: sums, functions of blocks, memory."""
