"""What the model of the coordinator is about: producers, what they have done, and partitions; and its end."""

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.table import MarkersToWrite, TxnSettings
from support.txn.model import TxnWorld
from support.txn.model_clients import Deed, Log, Producer

IDS = ("s", "t")
# So often everybody may ask again until all is over.
SETTLED_IN = 12


class TxnScene:
    """Two transactional ids and three partitions. What must hold when all is over is in settle()."""

    def open(self, settings: TxnSettings) -> None:
        self.world = TxnWorld(settings)
        self.logs = [Log(TopicPartition("orders", number)) for number in range(3)]
        self.producers: list[Producer] = []
        self.deeds: list[Deed] = []
        # Whatever was asked for, in all lives of the coordinator.
        self.asked: list[MarkersToWrite] = []
        # What clients with an epoch for each transaction have sent to end one.
        self.sent: list[tuple[str, tuple[int, int], bool]] = []
        self.holders: dict[tuple[int, int], Producer] = {}

    # Producers

    def pick(self, number: int) -> Producer:
        return self.producers[number % len(self.producers)]

    def go_on(self, producer: Producer, *, logs: set[int], commit: bool, hears: bool) -> None:
        if producer.is_out or producer.owner is None:
            producer.is_out = False
            producer.begin(hears=hears)
        elif producer.deed is None and producer.ending is None:
            for index in sorted(logs):
                if not producer.is_out:
                    producer.write(self.logs[index], hears=hears)
        else:
            producer.end(commit=commit, hears=hears)
        self.note(producer)

    def note(self, producer: Producer) -> None:
        """What it holds nobody else holds, and what it has done is remembered."""
        if producer.owner is not None:
            holder = self.holders.setdefault(producer.owner, producer)
            assert holder is producer, f"two producers hold {producer.owner}"
        if producer.deed is not None and producer.deed not in self.deeds:
            self.deeds.append(producer.deed)
        if producer.is_new:
            self.sent += [(producer.id, pair, commit) for pair, commit in producer.sent]
        producer.sent.clear()
        self.remember_asked()

    def remember_asked(self) -> None:
        self.asked += [one for one in self.world.desk.asked if not any(one is known for known in self.asked)]

    # Markers

    def is_wanted(self, ended: MarkersToWrite) -> bool:
        """Whether it is of the transaction that is prepared now, also if a former coordinator writes it.

        For old clients nothing tells a marker that is late from that of the next transaction, so that a late
        one may tear it. That is what version 2 is for.
        """
        marking = self.world.shard.table.pending_markers.get(ended.transactional_id)
        return marking is not None and marking.ended == ended._replace(coordinator_epoch=self.world.epoch)

    def write_markers(self) -> None:
        for ended in list(self.world.desk.asked):
            if self.world.shard.table.is_pending(ended):
                for log in self.logs:
                    if log.tp in ended.partitions:
                        assert log.mark(ended), f"{log.tp} refuses {ended}"
                self.world.marked(ended)

    # In the end

    def settle(self) -> None:
        """Who waits for an answer gets it; then a new producer comes for each id, and nothing stays open."""
        self.world.refuses = False
        for _ in range(SETTLED_IN):
            self.write_markers()
            for producer in self.producers:
                if producer.ending is not None and not producer.is_out:
                    producer.end(commit=producer.ending, hears=True)
                    self.note(producer)
        for producer in self.producers:
            assert producer.is_out or producer.ending is None, "never told how it ended"
        for transactional_id in IDS:
            self.last_producer(transactional_id)
        for log in self.logs:
            assert log.open == {}, f"{log.tp} has a transaction that nobody ends"
        for deed in self.deeds:
            assert deed.fate.keys() == deed.partitions
            deed.check()

    def last_producer(self, transactional_id: str) -> None:
        last = Producer(self.world, transactional_id, is_new=False, two_phase=False)
        for _ in range(SETTLED_IN):
            self.write_markers()
            last.begin()
            if last.owner is not None:
                break
        assert last.owner is not None, "the id is never free again"
        self.note(last)
