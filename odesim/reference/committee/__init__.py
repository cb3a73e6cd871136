"""The committee: a two-layer student, its overlaps with a teacher, and its generalisation error from them."""
