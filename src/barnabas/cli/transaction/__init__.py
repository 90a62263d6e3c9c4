"""The parts of `barnabas transactions`.

actions.py, aborting.py and hanging.py send requests; tables.py and documents.py format results.
"""
