"""What all step loops share: the search for zeros of events, and whether a solution runs to infinity."""
