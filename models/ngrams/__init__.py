"""Prediction of the next token from counts in the context: uniform, then unigrams, then bigrams are learned."""
