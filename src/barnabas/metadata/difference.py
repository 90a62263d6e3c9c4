"""The difference of two images, for code that acts on changes when a snapshot replaces the image."""

from barnabas.base.ids import Uuid
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import ConfigResource, MetadataImage, TopicImage


class Difference(Changes):
    """Changes between two finished images. They can be read, but nothing can be applied."""

    def __init__(self, before: MetadataImage, after: MetadataImage) -> None:
        super().__init__(before)
        self._after = after

    @property
    def topics_changed(self) -> set[Uuid]:
        before = self.image.topics_by_id
        return {one for one, topic in self._after.topics_by_id.items() if before.get(one) != topic}

    @property
    def topics_deleted(self) -> dict[Uuid, TopicImage]:
        after = self._after.topics_by_id
        return {one: topic for one, topic in self.image.topics_by_id.items() if one not in after}

    @property
    def brokers_changed(self) -> set[int]:
        before, after = self.image.brokers, self._after.brokers
        return {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}

    @property
    def configs_changed(self) -> set[ConfigResource]:
        before, after = self.image.configs, self._after.configs
        return {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}

    @property
    def features_changed(self) -> bool:
        return self.image.features != self._after.features

    def apply(self, record: object) -> None:
        raise AssertionError(f"applied to a finished difference: {record!r}")


def difference(before: MetadataImage, after: MetadataImage) -> Changes:
    return Difference(before, after)
