"""Models of mine for odesim; pyproject.toml says under which names it finds them."""
