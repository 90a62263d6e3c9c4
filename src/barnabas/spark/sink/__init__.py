"""Writing: rows.py and what is named after a guarantee where tasks run, their commit() on the driver."""
