"""What a micro-batch reads, decided from numbers alone: nothing here knows Spark, a socket or a clock."""
