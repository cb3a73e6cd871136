"""Matrices as associative memories of tokens, in training."""
