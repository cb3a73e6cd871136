"""The small transformer, its layers, its backward pass by hand."""
