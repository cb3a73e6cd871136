"""Members in the lanes of a core's vectors, each with its own step."""
