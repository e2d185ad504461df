"""Baselines that a network must beat."""
