"""Induction heads: two attention layers that copy what followed a token before, in training."""
