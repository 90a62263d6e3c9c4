"""Listeners and connections: frames in, answers out in order, and nobody may fill our memory."""
