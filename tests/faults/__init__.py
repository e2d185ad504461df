"""Campaigns of faults: kills, flipped bits, mutated files, hostile folders, starts at one moment.

`make faults` runs a tenth of every campaign of `run.py`, `make faults-full` all of it and continues
where it was stopped. A case follows from the seed, the campaign and its number:

    PYTHONPATH=tests python -m faults.run --only flips --case 123
"""
