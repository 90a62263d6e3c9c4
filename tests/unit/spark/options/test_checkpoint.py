"""The name of a stream, from its checkpoint location."""

from hashlib import sha256

import pytest

from barnabas.spark.options.sink import name_of_checkpoint


def name(location: str) -> str:
    return name_of_checkpoint(location, "/home/me")


@pytest.mark.parametrize(
    "spellings",
    [
        ("/data/a", "/data/a/", "/data//a", "//data/a", "/data/./b/../a", "file:/data/a", "file:///data/a/"),
        ("/home/me/a", "a", "a/", "./a", "../me/a", "FILE:///home/me/a"),
        ("s3://bucket/a", "s3://bucket/a/", "s3://bucket//a", "S3://bucket/a"),
        ("s3://bucket", "s3://bucket/"),
        ("hdfs:///a", "hdfs:/a", "hdfs:///a//"),
    ],
    ids=lambda each: each[0],
)
def test_spellings_of_one_location_have_one_name(spellings: tuple[str, ...]) -> None:
    assert {name(one) for one in spellings} == {name(spellings[0])}


def test_other_places_have_other_names() -> None:
    places = [
        "/data/a",
        "/data/A",
        "/data/b",
        "/home/me/data/a",
        "hdfs:///data/a",
        "hdfs://one/data/a",
        "hdfs://two/data/a",
        "file://elsewhere/data/a",
        "s3a://one/data/a",
    ]

    assert len({name(one) for one in places}) == len(places)


@pytest.mark.parametrize("location", ["/data/a", "s3://bucket/a", "hdfs://one:8020/data/a"])
def test_the_name_of_the_usual_spelling_never_changes(location: str) -> None:
    assert name(location) == sha256(location.encode()).hexdigest()[:24]
