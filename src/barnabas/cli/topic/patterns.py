"""Which topics a pattern on the command line means, as Kafka's tools read it.

Java's regular expressions and Python's are the same for what topics are called; a pattern that only Java
understands is refused like one that nobody does.
"""

import re
from typing import Final

from barnabas.cli.tool import ToolFailed

# Topics of the brokers themselves. Kafka's tools know them by name.
INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class TopicPattern:
    """A regular expression for whole names. Commas are alternatives; blanks and quotes are dropped."""

    def __init__(self, text: str) -> None:
        cleaned = text.strip().replace(",", "|").replace(" ", "")
        cleaned = cleaned.lstrip("\"'").rstrip("\"'")
        try:
            self._pattern = re.compile(cleaned)
        except re.error:
            raise ToolFailed(f"{cleaned} is an invalid regex.") from None

    def allows(self, topic: str, *, internal: bool = True) -> bool:
        """Without `internal`, topics of the brokers themselves are left out whatever the pattern is."""
        return self._pattern.fullmatch(topic) is not None and (internal or topic not in INTERNAL_TOPICS)
