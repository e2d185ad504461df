"""Shared code of translation and captioning: networks over pairs, search, evaluation of texts."""
