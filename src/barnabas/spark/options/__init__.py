"""Parsing of .option() values, with Spark's names and defaults, before anything is read or written."""
