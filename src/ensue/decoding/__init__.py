"""Decoding from any model with a step function: greedy, sampling, beam, exact, and the score of
existing sequences.

A sequence is over when its last word is the end, or when it has `most_steps` words. Truncated
sequences count like any others, so that every search looks for the best of the same set.
"""

from ensue.decoding.beam import PENALTIES, BeamSearch, beam
from ensue.decoding.exact import exact
from ensue.decoding.greedy import greedy
from ensue.decoding.sampling import Sampling, sample, seeds, stream
from ensue.decoding.step import Hypothesis, Reorder, Shared, State, Step, Watch, reordered, score

__all__ = [
    "PENALTIES",
    "BeamSearch",
    "Hypothesis",
    "Reorder",
    "Sampling",
    "Shared",
    "State",
    "Step",
    "Watch",
    "beam",
    "exact",
    "greedy",
    "reordered",
    "sample",
    "score",
    "seeds",
    "stream",
]
