"""The parts of `barnabas consumer-groups`.

actions.py, deleting.py, describing.py and resetting.py send requests; tables.py and documents.py format.
"""
