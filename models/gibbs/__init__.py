"""Masked sampling: tokens of a sequence are redrawn given the others, in continuous time, or decoded in a few steps."""
