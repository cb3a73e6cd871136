"""Scaling laws of SGD, word embeddings, escape from the equator and saddles one after another: what is learned when, in solvable models."""
