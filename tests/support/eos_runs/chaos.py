"""Kills at random: of workers, of the source and of the broker, for a given time.

The seed decides what happens to whom and when. What the processes were doing at that moment is chance, so a
seed that has failed may have to be tried more than once.
"""

from dataclasses import dataclass
from enum import Enum
from time import monotonic, sleep

from support.eos_runs.processes import Process
from support.eos_runs.run import SESSION_MS, WORKERS, EosRun

# Between two blows; as often as not it is the time that a rebalance or a commit takes.
QUIET_S_MAX = 2.5
RESTART_S_MAX = 1.5
# Some of the paused ones are given up by their group before they go on.
PAUSE_S_MAX = 2 * SESSION_MS / 1000
BROKER_DOWN_S_MAX = 1.0
# Of the kills of the broker; they come while a commit is under way, which takes some milliseconds.
PARTS_AT_COMMITS = 0.7
COMMIT_S_MAX = 0.5
DECIDED_S_MAX = 0.005
WORKERS_MAX = 5
LOOK_AGAIN_AFTER_S = 0.02


class Blow(Enum):
    """What happens to whom."""

    KILL_WORKER = "worker killed"
    PAUSE_WORKER = "worker paused"
    TWIN = "second worker with the same id"
    KILL_SOURCE = "source killed"
    KILL_BROKER = "broker killed"
    KILL_BOTH = "broker and worker killed"
    COME = "worker came"
    LEAVE = "worker left"
    VANISH = "worker killed for good"


WEIGHTS = {
    Blow.KILL_WORKER: 8,
    Blow.PAUSE_WORKER: 3,
    Blow.TWIN: 1,
    Blow.KILL_SOURCE: 3,
    Blow.KILL_BROKER: 3,
    Blow.KILL_BOTH: 2,
}
# Where the number of workers changes.
MORE_WEIGHTS = {Blow.COME: 2, Blow.LEAVE: 1, Blow.VANISH: 1}


@dataclass(slots=True)
class Seat:
    """One transactional id. `process` is who has it now, `begin_at` is when the next one begins."""

    process: Process | None = None
    begin_at: float | None = 0.0
    go_on_at: float | None = None
    is_open: bool = True


class Chaos:
    def __init__(self, run: EosRun) -> None:
        self._run = run
        self._rng = run.rng
        self._source = Seat()
        self._workers = {slot: Seat() for slot in range(WORKERS)}
        self._weights = {**WEIGHTS, **(MORE_WEIGHTS if run.shape.changes else {})}

    def go_on_for(self, seconds: float) -> None:
        """Afterwards everybody who is to be there has been started, and the broker runs."""
        ends_at = monotonic() + seconds
        blow_at = monotonic() + self._rng.uniform(0.0, QUIET_S_MAX)
        while (now := monotonic()) < ends_at:
            self._tend(now)
            if now >= blow_at:
                self._strike(self._choose())
                blow_at = monotonic() + self._rng.uniform(0.0, QUIET_S_MAX)
            sleep(LOOK_AGAIN_AFTER_S)
        self._tend(monotonic() + max(RESTART_S_MAX, PAUSE_S_MAX))

    def _choose(self) -> Blow:
        [chosen] = self._rng.choices(list(self._weights), weights=list(self._weights.values()))
        return chosen

    def _tend(self, now: float) -> None:
        """Start who is due, wake who slept, and look after those who ended by themselves."""
        for slot, seat in [(-1, self._source), *self._workers.items()]:
            process = seat.process
            if process is not None and not process.is_alive and seat.begin_at is None:
                if not process.was_killed:
                    process.check_end()
                seat.begin_at = now if seat.is_open else None
                seat.process = None
            if process is not None and seat.go_on_at is not None and now >= seat.go_on_at:
                process.go_on()
                seat.go_on_at = None
            if seat.begin_at is not None and now >= seat.begin_at and seat.is_open:
                seat.process = self._run.source() if slot < 0 else self._run.worker(slot)
                seat.begin_at = None

    def _strike(self, blow: Blow) -> None:
        seats = [seat for seat in self._workers.values() if self._is_there(seat)]
        match blow:
            case Blow.KILL_SOURCE:
                if not self._is_there(self._source):
                    return
                self._kill(self._source)
            case Blow.KILL_BROKER:
                self._kill_broker([])
            case Blow.KILL_BOTH:
                self._kill_broker(seats)
            case Blow.COME:
                if len(self._open_seats()) >= WORKERS_MAX:
                    return
                self._workers[len(self._workers)] = Seat()
            case _ if seats:
                self._strike_worker(blow, self._rng.choice(seats))
            case _:
                return
        self._run.happened[blow.value] += 1

    def _strike_worker(self, blow: Blow, seat: Seat) -> None:
        assert seat.process is not None
        if blow in (Blow.LEAVE, Blow.VANISH) and len(self._open_seats()) < 2:
            # Somebody has to be left.
            blow = Blow.KILL_WORKER
        if blow == Blow.KILL_WORKER:
            self._kill(seat)
        elif blow == Blow.PAUSE_WORKER:
            seat.process.pause()
            seat.go_on_at = monotonic() + self._rng.uniform(0.0, PAUSE_S_MAX)
        elif blow == Blow.TWIN:
            # The other one still lives, and is fenced as soon as this one serves.
            seat.process.go_on()
            seat.go_on_at, seat.begin_at = None, 0.0
        elif blow == Blow.VANISH:
            # What it has left open nobody ends: the time of the transaction has to run out.
            seat.is_open = False
            self._kill(seat)
        elif blow == Blow.LEAVE:
            seat.is_open = False
            seat.process.ask_to_leave()

    def _kill(self, seat: Seat) -> None:
        assert seat.process is not None
        seat.process.kill()
        seat.process, seat.go_on_at = None, None
        seat.begin_at = monotonic() + self._rng.uniform(0.0, RESTART_S_MAX)

    def _kill_broker(self, seats: list[Seat]) -> None:
        if self._rng.random() < PARTS_AT_COMMITS:
            self._await_commit()
        self._run.broker.kill()
        if seats:
            self._kill(self._rng.choice(seats))
        sleep(self._rng.uniform(0.0, BROKER_DOWN_S_MAX))
        self._run.broker.start()

    def _await_commit(self) -> None:
        """Until somebody has asked for a commit, and a moment longer: it may be decided, and not done."""
        seats = [seat for seat in (self._source, *self._workers.values()) if self._is_there(seat)]
        deadline = monotonic() + COMMIT_S_MAX
        while monotonic() < deadline:
            if any(seat.process is not None and seat.process.is_committing() for seat in seats):
                sleep(self._rng.uniform(0.0, DECIDED_S_MAX))
                return

    def _open_seats(self) -> list[Seat]:
        return [seat for seat in self._workers.values() if seat.is_open]

    @staticmethod
    def _is_there(seat: Seat) -> bool:
        return seat.process is not None and seat.process.is_alive


def disturb(run: EosRun, *, seconds: float) -> None:
    Chaos(run).go_on_for(seconds)
