"""N-gram language models: counting, smoothing, queries, reading and writing."""

from ensue.tasks.language.ngram.arpa import read_arpa, write_arpa
from ensue.tasks.language.ngram.arrays import arrays_of, model_of
from ensue.tasks.language.ngram.counts import NgramCounts
from ensue.tasks.language.ngram.model import NgramModel
from ensue.tasks.language.ngram.smoothing import SMOOTHINGS
from ensue.tasks.language.ngram.symbols import NgramSymbols, sentences

__all__ = [
    "SMOOTHINGS",
    "NgramCounts",
    "NgramModel",
    "NgramSymbols",
    "arrays_of",
    "model_of",
    "read_arpa",
    "sentences",
    "write_arpa",
]
