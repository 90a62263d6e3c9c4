"""What `barnabas topics` is made of: patterns of names, what is asked for, what is printed of a topic."""
