"""Targets: numbers with intervals, classes, several labels at once."""
