"""Supervised tasks: from any input to a class, several labels or a number."""
