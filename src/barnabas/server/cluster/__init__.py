"""This broker in its cluster: registration, metadata, controllers, and formatting."""
