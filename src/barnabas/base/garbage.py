"""Keep Python's search for cycles short in a process that has little that could be one.

What a broker holds (modules, settings, logs, the image) stays. The collector would look at all of it now and
then, and everybody would wait for that: 0.3 s with 20,000 topics. What requests leave behind is freed at
once, without the collector. So it looks at what is new, and at most twice. What stays after that is left out,
until collect_all() looks at everything.
"""

import gc
from typing import Final

# Objects that must have come and stayed before the youngest are looked at.
YOUNG_MAX: Final = 20_000
# So often these are looked at alone. Then those that stayed are looked at once more.
YOUNG_TIMES: Final = 2


def leave_out_what_is_there() -> None:
    """From here on only what comes later is looked at, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, YOUNG_TIMES, gc.get_threshold()[2])
    gc.callbacks.append(_leave_out_old)


def _leave_out_old(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()


def collect_all() -> None:
    """Look at everything once. It holds up the loop for some 0.3 us an object."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
