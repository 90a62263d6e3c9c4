"""The parts of `barnabas storage`: format and describe log directories, and list feature levels."""
