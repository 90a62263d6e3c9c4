"""What `barnabas demo` is made of: the clicks, the processes, what is looked at, and whether it adds up."""
