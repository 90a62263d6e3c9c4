"""What `barnabas transactions` does: actions.py, aborting.py and hanging.py ask, and tables.py and
documents.py show what was answered."""
