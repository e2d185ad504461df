"""Models that a network must beat."""
