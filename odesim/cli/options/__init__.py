"""What the commands' options mean: their kinds, and the requests made of them."""
