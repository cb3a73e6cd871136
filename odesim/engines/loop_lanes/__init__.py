"""Lanes with loops: members side by side, the right-hand side in loops over arrays. For systems that are too long to write out."""
