"""One text of a step, read into statements, and its targets."""
