"""Attention on data from a latent tree: which heights a layer learns, and how fast."""
