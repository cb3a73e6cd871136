"""Members on a GPU, a thread each."""
