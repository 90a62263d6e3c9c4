"""Metrics: what a broker reports about itself, and the HTTP server that serves it."""
