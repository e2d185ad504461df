"""Mutation testing: `make mutants` changes the code in one place at a time and sees whether the
tests notice. These modules are the command, not tests; `tests/test_mutants.py` tests them."""
