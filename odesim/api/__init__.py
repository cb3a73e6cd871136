"""What a person calls: integrate, ensemble, train, compare, resume, rerun."""
