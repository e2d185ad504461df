"""Runs: a task from its files to a tested model in a folder, and what is done with it."""
