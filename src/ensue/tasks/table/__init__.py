"""A column of a table from the others."""
