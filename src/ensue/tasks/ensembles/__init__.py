"""Ensembles of several models of one task."""
