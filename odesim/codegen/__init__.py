"""Code generation: Programs become source text, and source text becomes functions."""
