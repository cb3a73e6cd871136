"""What people give, read and checked: values, times, sizes, models."""
