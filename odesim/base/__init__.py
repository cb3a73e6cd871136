"""What every room may use: arrays, the GPU, memory, signals, memos, words."""
