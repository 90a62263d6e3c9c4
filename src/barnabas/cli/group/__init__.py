"""What `barnabas consumer-groups` does: actions.py, deleting.py, describing.py and resetting.py ask, and
tables.py and documents.py show what was answered."""
