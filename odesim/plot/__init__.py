"""Pictures: the project's one style, the picture of a Solution, the papers' figures. matplotlib is imported inside."""
