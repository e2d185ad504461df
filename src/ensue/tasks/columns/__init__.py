"""Columns of numbers and of categories: read from rows, scaled, and as a network takes them."""
