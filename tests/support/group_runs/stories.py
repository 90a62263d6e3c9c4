"""What happens to a group under load. group_run() checks at the end that nothing was lost or shared."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from support.group_runs.journal import now_us
from support.group_runs.member_process import MemberProcess
from support.group_runs.run import GroupRun

Story: TypeAlias = Callable[[GroupRun], None]
INSTANCE = "restarted"


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

    fourth, again = run.prepare("fourth"), run.prepare("first")
    first.kill()
    second.ask_to_leave()
    fourth.join()
    again.join()
    second.await_end()
    run.settle()

    third.leave()
    run.settle()


def static_members_restart(run: GroupRun) -> None:
    """One who comes back in time, under its instance id, finds its partitions, and nobody else has moved.
    One who does not come back loses them when its session is over."""
    other = run.start("other", instance="other")
    restarted = run.start(INSTANCE, instance=INSTANCE)
    run.settle_quietly()
    had = restarted.owned()

    restarted = restart(run, restarted, had, other, crash=False)
    # In the new protocol an instance id is free again only after its member said so, or its session ended.
    if not run.kind.is_new_protocol:
        restarted = restart(run, restarted, had, other, crash=True)

    restarted.kill()
    run.settle()


def restart(
    run: GroupRun, member: MemberProcess, had: set[int], other: MemberProcess, *, crash: bool
) -> MemberProcess:
    """Within its session; the new process is ready before the old one goes."""
    again = run.prepare(INSTANCE, instance=INSTANCE)
    begun_us = now_us()
    if crash:
        member.kill()
    else:
        member.leave()
    again.join()
    run.settle_quietly()
    assert again.owned() == had, run.story()
    assert run.moves_since(begun_us, of=other) == [], run.story()
    return again


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
