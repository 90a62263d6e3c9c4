"""Another number of threads, while work goes on."""

import asyncio
import threading

from barnabas.base.executor import ThreadExecutor


def test_more_threads_do_more_at_once_and_nothing_is_lost() -> None:
    async def story() -> list[int]:
        executor = ThreadExecutor(1)
        both = threading.Barrier(2)

        def wait_for_the_other() -> int:
            return both.wait(60)

        first = asyncio.ensure_future(executor.run(wait_for_the_other))
        await asyncio.sleep(0)
        executor.resize(2)
        second = asyncio.ensure_future(executor.run(wait_for_the_other))
        done = [await first, await second]
        executor.close()
        return done

    assert sorted(asyncio.run(story())) == [0, 1]
