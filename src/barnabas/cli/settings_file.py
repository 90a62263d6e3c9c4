"""Read the settings of a node from a server.properties file of Kafka."""

import os
from collections.abc import Mapping
from pathlib import Path

from barnabas.base import properties
from barnabas.base.errors import BarnabasError, Malformed
from barnabas.base.settings import InvalidSetting
from barnabas.server.settings.broker_settings import BrokerSettings

# Settings that hold one or more directories. Relative ones are resolved against the working directory.
_DIRECTORIES = ("log.dirs", "log.dir", "metadata.log.dir")


class BadFile(BarnabasError):
    """A file cannot be read as settings."""


def read_settings(path: str, overrides: Mapping[str, str] | None = None) -> BrokerSettings:
    """Read the settings of the file and apply the overrides. BadFile or InvalidSetting if invalid."""
    given = {**_read(path), **(overrides or {})}
    return BrokerSettings.parse(with_absolute_directories(given))


def with_absolute_directories(given: Mapping[str, str]) -> dict[str, str]:
    found = dict(given)
    for name in _DIRECTORIES:
        if given.get(name, "").strip():
            paths = [os.path.abspath(one.strip()) if one.strip() else "" for one in given[name].split(",")]
            if "/" in paths:
                raise InvalidSetting(name, given[name], "must name directories other than /")
            found[name] = ",".join(paths)
    return found


def _read(path: str) -> dict[str, str]:
    try:
        return properties.parse(Path(path).read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from None
    except Malformed as error:
        raise BadFile(f"{path}: {error}") from None
