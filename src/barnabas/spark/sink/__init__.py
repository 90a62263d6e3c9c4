"""The sink. write() of a writer runs in tasks, commit() and abort() on the driver."""
