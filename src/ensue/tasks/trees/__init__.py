"""Trees in brackets: as tokens, as arrays, as pictures; the answer at each node."""
