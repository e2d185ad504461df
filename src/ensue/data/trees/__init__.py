"""Trees in brackets: reading, writing, recognition."""
