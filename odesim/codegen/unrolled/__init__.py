"""Programs as straight lines of scalars."""
