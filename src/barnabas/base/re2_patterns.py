"""Regular expressions in RE2's syntax, which match in linear time, whatever is asked: by google-re2.

What clients send to a broker is compiled here, and never by `re`: with that, a short expression can keep a
broker busy for hours.
"""

from typing import Any

from barnabas.base.errors import BarnabasError


class NotRe2(BarnabasError):
    """It is no regular expression of RE2. `reason` is in RE2's words."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"`{text}` is not a regular expression of RE2: {reason}")
        self.reason = reason


def compile_re2(text: str) -> Any:
    """A pattern with the methods of `re`. NotRe2 if it is none."""
    # Few need it, and it takes a while to import.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    # What is wrong is raised; RE2 would write it to stderr as well.
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else ""
        raise NotRe2(text, reason) from None
    except UnicodeEncodeError:
        # Bytes of a command line that are no text.
        raise NotRe2(text, "invalid UTF-8") from None
