"""Faults of a simulated cluster: what can happen, when, and how random runs choose it."""
