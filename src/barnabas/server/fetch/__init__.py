"""Fetch: sessions, and requests that wait for more bytes."""
