"""Compares a theory with a training: curves of the same quantities at common times, and measures of their distance."""
