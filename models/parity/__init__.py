"""Parities of bits, learned at once or step by step."""
