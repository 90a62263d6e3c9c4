"""Keep Python's search for cycles short in a process that has little that could be one.

What a broker holds after its start (modules, settings, logs, the image) stays. The collector would look at
all of it now and then, and everybody would wait for that. What requests leave behind is freed at once,
without the collector.
"""

import gc
from typing import Final

# Objects that must have come and stayed before the youngest are looked at.
YOUNG_MAX: Final = 20_000


def leave_out_what_is_there() -> None:
    """From here on only what comes later is looked at, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *gc.get_threshold()[1:])
