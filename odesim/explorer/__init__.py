"""The explorer: sliders for the numbers of a model, and curves that follow them, in a browser or a notebook."""
