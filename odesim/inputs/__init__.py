"""Input of users, read and checked: models, values, times, sizes."""
