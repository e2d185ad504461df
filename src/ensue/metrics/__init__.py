"""Metrics: functions of answers and gold, and the one table of them."""
