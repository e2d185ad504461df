"""Times of series: their spellings, their spacing, and the order of steps."""
