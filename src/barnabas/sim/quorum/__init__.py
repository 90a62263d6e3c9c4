"""A quorum of raft drivers in a simulated world: the program of a voter, its network, and its clients."""
