"""The search space of a task: which settings selection varies, and how far."""
