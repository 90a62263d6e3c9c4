"""Topic patterns of the command line, as Kafka's tools read them.

For the characters of topic names, Java's and Python's regular expressions agree; a pattern that only Java
accepts is rejected as invalid.
"""

import re
from typing import Final

from barnabas.cli.tool import ToolFailed

# Kafka's tools hard-code the names of internal topics.
INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class TopicPattern:
    """A regular expression of full names. A comma separates alternatives; blanks and quotes are dropped."""

    def __init__(self, text: str) -> None:
        cleaned = text.strip().replace(",", "|").replace(" ", "")
        cleaned = cleaned.lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(cleaned)
        except re.error:
            raise ToolFailed(f"{cleaned} is an invalid regex.") from None

    def allows(self, topic: str, *, internal: bool = True) -> bool:
        """Without `internal`, internal topics never match."""
        return self._pattern.fullmatch(topic) is not None and (internal or topic not in INTERNAL_TOPICS)
