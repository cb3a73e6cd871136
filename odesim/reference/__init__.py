"""Small transformers trained torch-free, backward passes by hand: what the reduced systems are held against."""
