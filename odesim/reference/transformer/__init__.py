"""A small decoder-only transformer with hand-written backward pass."""
