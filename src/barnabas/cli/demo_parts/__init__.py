"""The parts of `barnabas demo`: generated clicks, child processes, reading back, and the check."""
