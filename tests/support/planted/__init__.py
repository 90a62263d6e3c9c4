"""Faults planted into the code, to prove that the simulator finds them. Only tests can switch them on.

Each replaces one function by one with a typical mistake.
"""
