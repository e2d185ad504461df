"""From files to encoded sequences: readers, vocabularies, splits, batches, built-in tasks."""
