"""Errors of the metadata log. After either, the node must stop: its view of the cluster is wrong."""

from barnabas.base.errors import BarnabasError


class MetadataInconsistent(BarnabasError):
    """A record contradicts the records before it."""

    def __init__(self, record: object, what: str) -> None:
        super().__init__(f"{what}: {record!r}")
        self.record = record
        self.what = what


class UnknownMetadataRecord(BarnabasError):
    """A record of an unknown type. Its changes would be missing in the image."""

    def __init__(self, record: object) -> None:
        super().__init__(f"unknown metadata record: {record!r}")
        self.record = record
