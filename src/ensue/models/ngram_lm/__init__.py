"""Language models of n-grams: counted, smoothed, asked, written and read."""

from ensue.models.ngram_lm.arpa import write_arpa
from ensue.models.ngram_lm.arpa_read import read_arpa
from ensue.models.ngram_lm.arrays import arrays_of, model_of
from ensue.models.ngram_lm.counts import NgramCounts
from ensue.models.ngram_lm.model import NgramModel
from ensue.models.ngram_lm.smoothing import SMOOTHINGS
from ensue.models.ngram_lm.symbols import Symbols, sentences

__all__ = [
    "SMOOTHINGS",
    "NgramCounts",
    "NgramModel",
    "Symbols",
    "arrays_of",
    "model_of",
    "read_arpa",
    "sentences",
    "write_arpa",
]
