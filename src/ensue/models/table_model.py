"""As it was called in version 0.1.0."""

from ensue.moved import moved

__getattr__ = moved("ensue")
