"""CRC-32C, and that its package is not loaded for it."""

import subprocess
import sys

import pytest

from barnabas.base.crc32c import crc32c

# The check value of CRC-32C: that of the digits 1 to 9.
CHECK = 0xE3069283


def test_crc32c_can_be_continued() -> None:
    assert crc32c(b"123456789") == CHECK
    assert crc32c(b"56789", crc32c(b"1234")) == CHECK
    assert crc32c(memoryview(b"0123456789")[1:]) == CHECK


@pytest.mark.parametrize(
    ("before", "loaded"),
    [("", "False"), ("import crc32c;", "True")],
    ids=["by itself", "after the package"],
)
def test_only_the_function_is_loaded_and_the_package_shares_it(before: str, loaded: str) -> None:
    program = (
        f"import sys; {before} from barnabas.base.crc32c import crc32c;"
        "print('importlib.metadata' in sys.modules);"
        "import crc32c as package; print(package.crc32c is crc32c)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == [loaded, "True"]
