"""A label for each step of a sequence."""
