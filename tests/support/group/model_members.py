"""Members of both protocols do anything at any time, and after every step the log tells all that there is.

This is the machine that all stories of groups begin with. Commits, administration and trouble of the broker
are added in tests/property/test_group_model.py.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from support.group.model import GroupWorld
from support.group.model_checks import (
    Tenures,
    check_all,
    check_settled,
    check_synced,
    check_work,
)
from support.group.model_classic import ClassicClient
from support.group.model_clients import GroupClient
from support.group.model_consumer import ConsumerClient
from support.group.model_offsets import OffsetModel
from support.group.model_transactions import Producers

GROUPS = ("g", "h")
TOPICS = ("orders", "orders-eu", "payments")
SESSION_MS = 12_000
RETENTION_MS = 200_000
CHECK_MS = 50_000
# So many rounds of heartbeats are enough for anything to be over.
SETTLED_IN = 40
FORMER_MAX = 4

PICK = st.integers(0, 99)
GROUP = st.sampled_from(GROUPS)
TOPIC = st.sampled_from(TOPICS)
SUBSCRIPTION = st.sets(st.sampled_from(TOPICS), max_size=3)
REGEX = st.sampled_from(["", "", "orders.*", ".*", "pay.*"])
INSTANCE = st.sampled_from([None, None, "one", "two"])
PROTOCOLS = st.sampled_from([("range",), ("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)])
KIND = st.sampled_from(["consumer", "consumer", "consumer", "connect"])
MIGRATION = st.sampled_from(["bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"])
ODDITY = st.sampled_from(["asks again", "starts anew", "is not heard"])
SIZE = st.sampled_from([2, 3, 1_000, 1_000, 1_000])


class Members(RuleBasedStateMachine):
    """Two groups and their clients. Time passes and topics change, and nothing else happens to them."""

    @initialize(
        migration=MIGRATION,
        size=SIZE,
        interval_ms=st.sampled_from([0, 1_000]),
        delay_ms=st.sampled_from([0, 3_000]),
        assignor=st.sampled_from(["uniform", "range"]),
        population=st.lists(st.tuples(GROUP, INSTANCE, st.booleans()), max_size=5),
        rounds=st.sampled_from([0, 1, 5]),
    )
    def begin(
        self,
        migration: str,
        size: int,
        interval_ms: int,
        delay_ms: int,
        assignor: str,
        population: list[tuple[str, str | None, bool]],
        rounds: int,
    ) -> None:
        settings = GroupSettings(
            migration=migration,
            classic_size_max=size,
            consumer_size_max=size,
            initial_rebalance_delay_ms=delay_ms,
            new_member_join_timeout_ms=15_000,
            assignors=(assignor,),
            times=GroupTimes(session_timeout_ms=SESSION_MS, assignment_interval_ms=interval_ms),
            regex_refresh_interval_ms=30_000,
            offsets_retention_ms=RETENTION_MS,
            offsets_retention_check_interval_ms=CHECK_MS,
        )
        self.world = GroupWorld(settings, dict.fromkeys(TOPICS[:2], 3))
        self.offsets = OffsetModel()
        self.producers = Producers(self.world, self.offsets)
        self.tenures = Tenures()
        self.clients: list[GroupClient] = []
        # Clients that have gone or were replaced: what they knew is not true any more.
        self.former: list[GroupClient] = []
        self.made = 0
        self.world.watch = self.check_owners
        for group, instance_id, is_classic in population:
            if is_classic:
                self.a_classic_client_comes(group, instance_id, topics=TOPICS)
            else:
                self.a_consumer_comes(group, instance_id, topics=TOPICS)
        for _ in range(rounds):
            self.all_go_on(ms=3_000)

    # Clients come

    @rule(
        group=GROUP,
        topics=SUBSCRIPTION,
        instance_id=INSTANCE,
        protocols=PROTOCOLS,
        protocol_type=KIND,
        cooperative=st.booleans(),
        version=st.sampled_from([0, 3, 5, 8, 9]),
    )
    def a_classic_client_comes(self, group: str, instance_id: str | None, **how: Any) -> None:
        self.made += 1
        self.come(ClassicClient(self.world, group, f"c{self.made}", instance_id=instance_id, **how))

    @rule(
        group=GROUP,
        topics=SUBSCRIPTION,
        regex=REGEX,
        instance_id=INSTANCE,
        version=st.sampled_from([0, 1, 1]),
    )
    def a_consumer_comes(self, group: str, instance_id: str | None, **how: Any) -> None:
        self.made += 1
        self.come(ConsumerClient(self.world, group, f"m{self.made}", instance_id=instance_id, **how))

    def come(self, client: GroupClient) -> None:
        """Of an instance there is one process: the one before has ended, whether it said so or not."""
        same = [
            one
            for one in self.clients
            if client.instance_id is not None
            and (one.group, one.instance_id) == (client.group, client.instance_id)
        ]
        for one in same:
            self.retire(one)
        self.clients.append(client)
        client.turn()

    def retire(self, client: GroupClient) -> None:
        self.clients.remove(client)
        self.former = [*self.former, client][-FORMER_MAX:]

    def pick(self, number: int) -> GroupClient:
        return self.clients[number % len(self.clients)]

    # Clients act

    @precondition(lambda self: self.clients)
    @rule(number=PICK, times=st.integers(1, 3))
    def one_goes_on(self, number: int, times: int) -> None:
        for _ in range(times):
            self.pick(number).turn()

    @precondition(lambda self: self.clients)
    @rule(ms=st.sampled_from([0, 500, 3_000]))
    def all_go_on(self, ms: int) -> None:
        for client in self.clients:
            client.turn()
        self.world.pass_time(ms)

    @precondition(lambda self: self.clients)
    @rule(number=PICK, how=ODDITY)
    def one_acts_oddly(self, number: int, how: str) -> None:
        client = self.pick(number)
        if how == "starts anew":
            client.starts_anew()
            client.turn()
        elif how == "asks again":
            # Its request took too long for it.
            client.ask_again()
        elif isinstance(client, ConsumerClient) and client.epoch > 0:
            client.heartbeat(loses_the_answer=True)

    @precondition(lambda self: self.clients)
    @rule(number=PICK, rounds=st.integers(1, 3))
    def one_is_slow_and_the_others_go_on(self, number: int, rounds: int) -> None:
        """It does not say what it has, as while it runs a callback."""
        slow = self.pick(number)
        for _ in range(rounds):
            if isinstance(slow, ConsumerClient) and slow.is_in:
                slow.heartbeat(tells_what_it_has=False)
            self.all_but(slow)

    def all_but(self, client: GroupClient) -> None:
        for other in self.clients:
            if other is not client:
                other.turn()

    @precondition(lambda self: self.clients)
    @rule(number=PICK, topics=SUBSCRIPTION, regex=REGEX)
    def one_changes_its_mind(self, number: int, topics: set[str], regex: str) -> None:
        client = self.pick(number)
        client.subscribes(topics, regex)
        self.all_but(client)

    @precondition(lambda self: self.clients)
    @rule(number=PICK, how=st.sampled_from(["leaves", "leaves", "leaves for a while", "falls silent"]))
    def one_goes(self, number: int, how: str) -> None:
        client = self.pick(number)
        if how == "leaves for a while" and isinstance(client, ConsumerClient):
            client.leave(comes_back=True)
            return
        if how != "falls silent":
            client.leave()
        self.retire(client)

    @precondition(lambda self: self.clients)
    @rule(number=PICK)
    def one_changes_its_protocol(self, number: int) -> None:
        """An application is rolled over: static members keep their place."""
        client = self.pick(number)
        if client.instance_id is None:
            client.leave()
            self.retire(client)
        if isinstance(client, ClassicClient):
            self.a_consumer_comes(client.group, client.instance_id, topics=client.topics)
        else:
            self.a_classic_client_comes(client.group, client.instance_id, topics=client.topics)

    # The world

    @rule(ms=st.sampled_from([10, 1_000, 5_000, 15_000, 40_000, 250_000]))
    def time_passes(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule(topics=st.dictionaries(TOPIC, st.integers(1, 4)))
    def topics_change(self, topics: dict[str, int]) -> None:
        self.world.refuses = False
        gone = self.world.has_topics(topics)
        self.offsets.forget_topics(gone)

    # In the end

    @rule()
    def everybody_settles(self) -> None:
        """Clients that do as they should are all in their groups soon, and everything is read."""
        self.world.refuses = False
        for _ in range(SETTLED_IN):
            self.world.pass_time(2_500)
            for client in [one for one in self.clients if one.out_for_good]:
                self.retire(client)
            for client in self.clients:
                client.turn()
        for group_id in GROUPS:
            check_settled(self.world, group_id, [one for one in self.clients if one.group == group_id])

    @rule()
    def everybody_settles_again(self) -> None:
        """Twice as often as other things: what went wrong before is seen when all should be well."""
        self.everybody_settles()

    # What always holds

    def check_owners(self) -> None:
        self.offsets.see_members(self.world)
        self.tenures.check(self.world.shard)
        check_work(self.world.shard, self.clients)

    @invariant()
    def the_shard_is_sound(self) -> None:
        if not hasattr(self, "world"):
            return
        self.offsets.check(self.world, GROUPS)
        check_all(self.world)
        self.check_owners()
        for client in self.clients:
            check_synced(self.world.shard, client)
