"""A number from a sequence, with its interval."""
