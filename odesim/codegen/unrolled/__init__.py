"""Programs as straight-line code of scalars, without loops."""
