"""Runs: from data files to a tested model in a folder, and the commands on it."""
