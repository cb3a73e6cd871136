"""Embeddings and attention, trained on documents of topics."""
