"""Attention as particles on a sphere: the tokens of a transformer with fixed weights, with depth as time."""
