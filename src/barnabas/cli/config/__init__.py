"""What `barnabas configs` is made of: whose settings are meant, what changes, what is printed."""
