"""Programs as source text, and source text as functions."""
