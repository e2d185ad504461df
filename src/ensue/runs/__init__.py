"""Runs: folders with a tested model, made from data files, and the commands on such folders."""
