"""What can be wrong with a metadata log. Either way the node must not go on: it does not know the cluster."""

from barnabas.base.errors import BarnabasError


class MetadataInconsistent(BarnabasError):
    """A record that contradicts the records before it, so that one of them is wrong."""

    def __init__(self, record: object, what: str) -> None:
        super().__init__(f"{what}: {record!r}")
        self.record = record
        self.what = what


class UnknownMetadataRecord(BarnabasError):
    """A record of a kind that this release does not know. What it changed would be missing in the image."""

    def __init__(self, record: object) -> None:
        super().__init__(f"no metadata record of this release: {record!r}")
        self.record = record
