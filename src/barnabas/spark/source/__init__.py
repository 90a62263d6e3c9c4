"""Reading: cluster.py and the readers on the driver, ranges.py where the tasks run."""
