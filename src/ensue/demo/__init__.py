"""Demos for a terminal, which take minutes: `translation` of written dates, and `cell`, on cells as
equations."""
