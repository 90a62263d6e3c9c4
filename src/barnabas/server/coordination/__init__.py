"""Connects handlers to the coordinators of groups and transactions, and these to the partitions they lead."""
