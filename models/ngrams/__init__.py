"""Prediction of the next token from counts in the context; learned is first a uniform guess, then unigrams, then bigrams."""
