"""Checks that Spark's workers import the same sources as the tests."""

from pathlib import Path

from pyspark.sql import SparkSession

import barnabas


def test_workers_import_the_sources_that_the_test_imports(spark: SparkSession) -> None:
    here = str(Path(barnabas.__file__).resolve())

    def there(_: int) -> str:
        import barnabas

        return str(Path(barnabas.__file__).resolve())

    assert spark.sparkContext.parallelize([0], 1).map(there).collect() == [here]
