"""Training data: texts, contexts, hierarchies of latent variables."""
