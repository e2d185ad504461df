"""Runs of every task as Ensue 0.3.0 writes them: later versions must read them."""
