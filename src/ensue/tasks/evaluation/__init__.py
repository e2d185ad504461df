"""Evaluation against gold labels: metrics, intervals, calibration, mistakes."""
