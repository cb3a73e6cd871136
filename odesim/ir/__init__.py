"""Intermediate forms: a Program, scalars in straight lines, their derivatives; no text of any language."""
