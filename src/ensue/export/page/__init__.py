"""Whole models as JavaScript, and the page that runs them."""
