"""Trees in brackets: read, written, told from other texts."""
