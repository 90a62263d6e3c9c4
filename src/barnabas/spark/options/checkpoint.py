"""The name of a stream, derived from its checkpoint location. Pure: the working directory is a parameter.

Different spellings of a location must give the same name: it is part of the transactional.id with which a
restarted query fences its open transaction. Links are not resolved.
"""

import re
from hashlib import sha256
from posixpath import join, normpath
from typing import Final

_SIZE: Final = 24
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):(//([^/]*))?(/.*)?", re.IGNORECASE)


def name_of_checkpoint(location: str, directory: str) -> str:
    return sha256(_written_alike(location, directory).encode()).hexdigest()[:_SIZE]


def _written_alike(location: str, directory: str) -> str:
    """Normalize a location. A local path gets no scheme, so that names stay the same across releases."""
    found = _SCHEME.fullmatch(location)
    if found is None:
        return _path(join(directory, location))
    scheme, host, path = found[1].lower(), found[3] or "", _path(found[4] or "/")
    if scheme == "file" and not host:
        return path
    if path == "/":
        path = ""
    return f"{scheme}://{host}{path}"


def _path(path: str) -> str:
    # normpath() keeps two leading slashes, which POSIX leaves to the implementation.
    return normpath("/" + path.lstrip("/"))
