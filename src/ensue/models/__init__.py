"""As the task models were called in version 0.1.0; every name here warns and says where it is."""

from ensue.moved import moved

__getattr__ = moved("ensue")
