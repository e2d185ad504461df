"""Scores by the number of labels, with a base and without."""
