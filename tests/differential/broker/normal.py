"""Answers made comparable: what two brokers cannot agree on is replaced by tokens that keep its relations.

The id of a topic becomes `<id of NAME>`, other ids and numbers that a broker makes up are counted as they are
first seen, of a member's id only the part that is made up. Ports and hosts and paths become words, times near
the story's own time are told by their distance to it. Everything else is left as the broker said it. Lists
whose order means nothing are sorted.
"""

import re
from typing import Any

# The stories' records are written as of an hour ago; what a broker stamps is of now.
NEAR_MS = 1_800_000
NOW_WITHIN_MS = 6 * 3_600_000

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"

# Fields that name an item of a list. An item may have several: a resource has a type and a name.
KEY_FIELDS = (
    "name", "topic", "topicName", "topicId", "feature", "resourceType", "resourceName", "apiKey", "nodeId",
    "brokerId", "replicaId", "partitionIndex", "partition", "partitionId", "index", "producerId",
    "groupId", "key", "memberId", "groupInstanceId", "transactionalId",
)  # fmt: skip

# Lists whose order is part of the answer.
ORDERED = frozenset({"synonyms", "records", "batches", "recordErrors", "abortedTransactions", "replicaNodes"})

# What an error says in words: compared by being there or not.
MESSAGES = frozenset({"errorMessage", "batchIndexErrorMessage"})

# The part of a member's id that a coordinator makes up: after a name, or alone.
_MADE_UP = re.compile(r"(?<=-)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[A-Za-z0-9_-]{22}$")
_MEMBERS = frozenset({"memberId", "leader"})
_LONG_NUMBER = re.compile(r"-?\b\d{13,19}\b")
_TIMES = frozenset(
    {"timestamp", "logAppendTimeMs", "lastTimestamp", "baseTimestamp", "maxTimestamp", "lastFetchTimestamp"}
    | {"lastCaughtUpTimestamp", "transactionStartTimeMs"}
)
_IDS = {"clusterId": "cluster", "replicaDirectoryId": "directory"}
_WORDS = {
    "throttleTimeMs": "<throttle>",
    "host": "<host>",
    "port": "<port>",
    "logDir": "<log directory>",
    "totalBytes": "<bytes>",
    "usableBytes": "<bytes>",
    "finalizedFeaturesEpoch": "<epoch>",
    "documentation": "<documentation>",
    # Of the metadata log, whose records are each broker's own affair.
    "logEndOffset": "<offset>",
}


class Normaliser:
    """For the answers of one story, in the order in which they came."""

    def __init__(self, *, base_ms: int, texts: dict[str, str]) -> None:
        self._base_ms = base_ms
        # Longest first, so that a path is replaced before a part of it.
        self._texts = sorted(texts.items(), key=lambda item: -len(item[0]))
        self._tokens: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def token(self, kind: str, value: object) -> str:
        """The token of a value, the same one whenever it is seen."""
        known = self._tokens.get((kind, value))
        if known is None:
            self._counts[kind] = number = self._counts.get(kind, 0) + 1
            known = self._tokens[kind, value] = (
                f"<{kind}>" if " of " in kind and number == 1 else f"<{kind} {number}>"
            )
            if kind.startswith("id of "):
                self._texts.insert(0, (str(value), known))
        return known

    def answer(self, value: Any) -> Any:
        """The answer as it is compared and recorded."""
        self._learn(value)
        return self._value("", value)

    def _learn(self, value: Any) -> None:
        """Which topics the ids in it belong to."""
        if isinstance(value, dict):
            name, topic_id = value.get("name"), value.get("topicId")
            if name and topic_id and topic_id != NO_ID and ("id", topic_id) not in self._tokens:
                self._tokens["id", topic_id] = self.token(f"id of {name}", topic_id)
            for member in value.values():
                self._learn(member)
        elif isinstance(value, list):
            for item in value:
                self._learn(item)

    def _value(self, field: str, value: Any) -> Any:
        if isinstance(value, dict):
            plain = {name: self._value(name, member) for name, member in value.items()}
            if plain.get("currentVoters"):
                # Of the metadata log again: DescribeQuorum.
                plain["highWatermark"] = "<offset>"
            return plain
        if isinstance(value, list):
            items = [self._value(field, item) for item in value]
            return items if field in ORDERED else sorted(items, key=_order)
        if field == "records":
            return self._record_cell(value)
        return self._scalar(field, value)

    def _record_cell(self, value: Any) -> Any:
        """Of a decoded record: its time is the only number that is large."""
        return self._time(value) if isinstance(value, int) and value > NOW_WITHIN_MS else value

    def _scalar(self, field: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if field in _WORDS and value not in (-1, ""):
            return _WORDS[field]
        if field in _TIMES:
            return self._time(value)
        if field in _IDS:
            return value if value in ("", NO_ID) else self.token(_IDS[field], value)
        if field == "topicId":
            return value if value == NO_ID else self._tokens.get(("id", value)) or self.token("id", value)
        if field in _MEMBERS and isinstance(value, str):
            return _MADE_UP.sub(lambda found: self.token("member", found[0]), value)
        if field == "sessionId" and value:
            return self.token("session", value)
        if field == "producerId":
            return self._tokens.get(("producer", value), value)
        if field in MESSAGES:
            return self._message(value)
        return self._text(value) if isinstance(value, str) else value

    def _time(self, value: int) -> int | str:
        distance = value - self._base_ms
        if abs(distance) < NEAR_MS:
            return f"<base{distance:+d}>"
        return "<now>" if 0 < distance < NOW_WITHIN_MS else value

    def _message(self, value: str) -> str:
        """Of an error: it is compared by being there, but two recordings should be the same."""
        return _LONG_NUMBER.sub("<number>", self._text(value))

    def _text(self, value: str) -> str:
        for text, word in self._texts:
            value = value.replace(text, word)
        return value


def item_key(item: Any) -> str | None:
    """What names this item among those beside it."""
    if not isinstance(item, dict):
        return None
    named = [str(item[field]) for field in KEY_FIELDS if field in item and item[field] is not None]
    return " ".join(named) or None


def _order(item: Any) -> tuple[str, str]:
    if isinstance(item, int) and not isinstance(item, bool):
        return f"{item:020d}", ""
    return item_key(item) or "", str(item)
