"""The search space of a task: the settings that selection varies, and their ranges."""
