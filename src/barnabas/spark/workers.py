"""A Python worker of Spark, which runs many tasks one after the other."""

import gc
from functools import cache


@cache
def settle_in() -> None:
    """Once in a worker: what is there by now stays, and is left out when garbage is looked for.

    Spark has Python look for it after every task, before the worker takes another. With all the modules of
    Spark, Arrow and ours that takes 60 ms, a quarter of a small micro-batch, and finds nothing.
    """
    gc.collect()
    gc.freeze()
