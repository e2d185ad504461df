"""Memory studies: how far back each cell remembers."""
