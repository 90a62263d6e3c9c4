"""Validation of topic names."""

import re
from collections.abc import Iterable
from typing import Final

NAME_LENGTH_MAX: Final = 249
METADATA_TOPIC: Final = "__cluster_metadata"

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def topic_name_error(name: str) -> str | None:
    """Why a topic name is invalid, in Kafka's words; None if it is valid."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not _LEGAL.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


def colliding_topic(name: str, others: Iterable[str]) -> str | None:
    """Another topic with the same metric names, in which `.` and `_` are equal."""
    if "." not in name and "_" not in name:
        return None
    unified = name.replace(".", "_")
    for other in others:
        if len(other) == len(name) and other != name and other.replace(".", "_") == unified:
            return other
    return None
