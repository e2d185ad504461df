"""Comparisons with other programs. They run from a clone of the repository."""
