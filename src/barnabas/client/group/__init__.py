"""Membership of a consumer in a group: who reads what, and how far everybody has come.

Pure: subscription.py, assignors/, classic.py and modern.py (the two protocols as state machines), readers.py.
They decide; member.py carries it out with coordinator.py, commits.py and callbacks.py.
"""
