"""Request handlers, one file per API family: its contract, its handlers, and its rows of the API table."""
