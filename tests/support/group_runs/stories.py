"""What happens to a group under load. group_run() checks at the end that nothing was lost or shared."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from support.group_runs.journal import now_us
from support.group_runs.run import GroupRun

Story: TypeAlias = Callable[[GroupRun], None]


def members_come_and_go(run: GroupRun) -> None:
    """Join, leave, crash and restart, each when the one before has come to its end."""
    first, second = run.start("first"), run.start("second")
    run.settle()

    run.start("third")
    run.settle()

    second.leave()
    run.settle()

    first.kill()
    run.settle()

    run.start("first")
    run.settle()


def all_at_once(run: GroupRun) -> None:
    """Join, leave and crash in the middle of each other's rebalances."""
    first = run.start("first")
    run.settle()
    second, third = run.start("second"), run.start("third")
    run.settle()

    first.kill()
    second.ask_to_leave()
    run.start("fourth")
    second.await_end()
    run.start("first")
    run.settle()

    third.leave()
    run.settle()


def static_members_restart(run: GroupRun) -> None:
    """One who comes back in time, under its instance id, finds its partitions, and nobody else has moved.
    One who does not come back loses them when its session is over."""
    other = run.start("other", instance="other")
    restarted = run.start("restarted", instance="restarted")
    run.settle_quietly()
    had = restarted.owned()

    begun_us = now_us()
    restarted.leave()
    restarted = run.start("restarted", instance="restarted")
    run.settle_quietly()
    assert restarted.owned() == had, run.story()
    assert run.moves_since(begun_us, of=other) == [], run.story()

    # In the new protocol an instance id is free again only after its member said so, or its session ended.
    if not run.kind.is_new_protocol:
        begun_us = now_us()
        restarted.kill()
        restarted = run.start("restarted", instance="restarted")
        run.settle_quietly()
        assert restarted.owned() == had, run.story()
        assert run.moves_since(begun_us, of=other) == [], run.story()

    restarted.kill()
    run.settle()


def the_protocol_changes(run: GroupRun) -> None:
    """From the classic protocol to the new one, member by member, and back again."""
    new = replace(run.kind, protocol="consumer", assignor="")
    first, second = run.start("first"), run.start("second")
    run.settle()

    third = run.start("third", kind=new)
    run.settle()

    first.leave()
    first = run.start("first", kind=new)
    run.settle()

    second.leave()
    run.settle()

    run.start("second")
    run.settle()

    first.leave()
    third.leave()
    run.settle()

    run.start("third")
    run.settle()


def the_broker_crashes(run: GroupRun) -> None:
    """Its groups are as they were when it is there again, and a rebalance is possible then."""
    run.start("first")
    run.start("second")
    run.settle()

    crashed_us = now_us()
    run.broker.kill()
    run.broker.start()
    run.settle_since(crashed_us)

    run.start("third")
    run.settle()
