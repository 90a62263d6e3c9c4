"""Produce: the checks of a batch before it is appended."""
