"""Ensue: neural sequence models whose cells are written once, as their equations."""

__version__ = "0.1.0"
