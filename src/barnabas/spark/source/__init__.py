"""The source. cluster.py and the readers run on the driver, tasks.py and ranges.py in tasks."""
