"""The layers of JoMA, and their reduced dynamics."""
