"""The broker as part of its cluster: registration, metadata, controllers, and formatting."""
