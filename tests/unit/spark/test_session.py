"""The Python interpreter of a session. test_ways_to_run.py checks that Spark finds the source with it."""

import sys

import pytest

from barnabas.spark.session import use_this_python


@pytest.mark.parametrize("environment", [{}, {"PYSPARK_PYTHON": ""}])
def test_spark_uses_the_interpreter_of_the_program(environment: dict[str, str]) -> None:
    assert use_this_python(environment) == sys.executable
    assert environment == {"PYSPARK_PYTHON": sys.executable}


def test_an_interpreter_that_is_set_is_kept() -> None:
    environment = {"PYSPARK_PYTHON": "/opt/python"}

    assert use_this_python(environment) == "/opt/python"
    assert environment == {"PYSPARK_PYTHON": "/opt/python"}
