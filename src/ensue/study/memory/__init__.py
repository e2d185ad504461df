"""How far back each cell remembers."""
