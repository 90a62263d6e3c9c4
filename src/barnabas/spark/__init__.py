"""The Spark data source and sink; see docs/design/0016-spark.md. Imports the client, never the broker."""
