"""Requests: the table of APIs, dispatch, deferred responses, and long requests handled in slices."""
