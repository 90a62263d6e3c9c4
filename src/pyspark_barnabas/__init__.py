"""What Spark finds by its name when it looks for data sources: format("barnabas") needs no registration."""

from barnabas.spark.data_source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
