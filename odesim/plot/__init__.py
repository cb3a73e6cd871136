"""Pictures of solutions, ensembles, trainings and comparisons, in one style; the figures of the papers by name."""
