"""Check whether brokers accept a regular expression of topics.

Kafka uses RE2/J; RE2's messages are translated into those of RE2/J.
"""

from typing import Final

from barnabas.base.re2_patterns import NotRe2, compile_re2

# Prefixes of RE2's messages, and the corresponding messages of RE2/J.
_SAID: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def fault_of(expression: str) -> str | None:
    """Return what is wrong with the expression, or None."""
    try:
        compile_re2(expression)
    except NotRe2 as error:
        kind = error.reason.partition(": ")[0]
        return _SAID.get(kind, kind)
    return None
