"""Types shared by the coordinators' decisions: outcomes, timers and refusals. Pure."""
