"""A class, or several labels, for a sequence."""
