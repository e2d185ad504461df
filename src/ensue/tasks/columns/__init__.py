"""Columns of numbers and categories: read from rows, scaled, and encoded for networks."""
