"""A simulated world for the real code, in which time, disk and network can fail on demand."""
