"""What coordinators of all kinds decide in: outcomes, timers, and why something is refused. Pure."""
