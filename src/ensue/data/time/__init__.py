"""Times of series: how they are spelt, how far they are apart, and the order of steps."""
