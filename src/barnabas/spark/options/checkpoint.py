"""What a stream is called by where its checkpoint is. Pure: the working directory is handed in.

The same place must have the same name however it is written: its transactional.id has the name, by which a
query that runs again fences what it left open. Whether two places are one by a link nobody looks.
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
    """A path without a scheme is one of this machine, and is left without: so it was always named."""
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
    # normpath() leaves two slashes at the beginning, for systems to which they mean something.
    return normpath("/" + path.lstrip("/"))
