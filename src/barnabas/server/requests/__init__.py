"""Requests: the table of APIs, dispatch, answers that come later, and long requests handled in slices."""
