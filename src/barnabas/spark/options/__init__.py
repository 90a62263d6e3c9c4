"""What a user says in .option(): Spark's names and defaults, checked before anything is read or written."""
