"""The options of commands: their types, and the requests read from them."""
