"""A buffer for generated source code, with the constants that it refers to."""

from struct import Struct


class Source:
    """Indented lines, fresh variable names, and the namespace in which the code will run."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.namespace: dict[str, object] = {}
        self._names = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: object) -> str:
        """Add `value` to the namespace and return its name; one object always gets one name."""
        name = stem
        while name in self.namespace and self.namespace[name] is not value:
            name = self.fresh(stem)
        self.namespace[name] = value
        return name

    def unpacker(self, codes: str) -> tuple[str, int]:
        """The name of an unpack function for big-endian `codes`, and the number of bytes it reads."""
        layout = Struct(">" + codes)
        return self._once(f"unpack_{codes}", layout.unpack_from), layout.size

    def packer(self, codes: str) -> str:
        return self._once(f"pack_{codes}", Struct(">" + codes).pack)

    def _once(self, name: str, value: object) -> str:
        name = name.replace("?", "o")
        self.namespace.setdefault(name, value)
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
