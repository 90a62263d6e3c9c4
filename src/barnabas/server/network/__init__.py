"""Listeners and connections: read request frames, send responses in order, bound the memory of clients."""
