"""A broker's metrics, health and readiness, and the HTTP server for them."""
