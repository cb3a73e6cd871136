"""What all step loops share: roots of events."""
