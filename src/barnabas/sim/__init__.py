"""The simulated world: what the real code runs in when time, disk and network are to misbehave on demand."""
