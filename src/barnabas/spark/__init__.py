"""Topics as tables and streams of Spark: docs/design/0016-spark.md. Knows the client, not the broker."""
