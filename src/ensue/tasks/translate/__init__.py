"""One sequence of words becomes another."""
