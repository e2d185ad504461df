"""How far back each cell remembers."""

from ensue.moved import moved

__getattr__ = moved("ensue.study.memory.study")
