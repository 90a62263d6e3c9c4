"""Whether a regular expression for topics is one that brokers take.

Kafka uses RE2/J, which has other words for what is wrong. They are used here.
"""

from typing import Final

from barnabas.base.re2_patterns import NotRe2, compile_re2

# How RE2's messages begin, and what RE2/J says for the same.
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
    """What is wrong with it, or None."""
    try:
        compile_re2(expression)
    except NotRe2 as error:
        kind = error.reason.partition(": ")[0]
        return _SAID.get(kind, kind)
    return None
