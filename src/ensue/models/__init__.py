"""Models for tasks: what takes data, is fitted, evaluated, used, saved and loaded."""
