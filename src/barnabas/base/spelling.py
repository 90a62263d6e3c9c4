"""Find the known name that a misspelled one probably stands for."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, whatever its case; None if no name is similar."""
    # Imported here because only error messages need it.
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None
