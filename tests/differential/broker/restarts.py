"""What a broker still knows after a clean restart: epochs, producers, settings, where logs begin."""

from differential.broker.batches import batch
from differential.broker.cluster import by_name
from differential.broker.config_changes import SET, change
from differential.broker.configs import BROKER, TOPIC, describe
from differential.broker.offsets import EARLIEST, LATEST, delete_records, epoch_end, fill, list_offsets
from differential.broker.producers import init, new_producer, producers_of
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk

RESTARTS = Family("restarts")


@RESTARTS.story
def a_clean_restart(talk: Talk) -> None:
    topic_id = talk.create("kept", 2, retention_ms=-1)
    fill(talk, "kept")
    talk.quietly(delete_records("kept", 4), 2)
    talk.quietly(change(TOPIC, "kept", ("segment.bytes", SET, "2000000")), 1)
    talk.quietly(change(BROKER, "", ("message.max.bytes", SET, "2000000")), 1)
    talk.settle()
    producer = new_producer(talk, "producer")
    sent = batch(b"x", b"y", at_ms=talk.base_ms, producer=(producer, 0, 0))
    talk.ask("sent", produce("kept", sent, topic_id=topic_id))
    opened = talk.ask("session", fetch("kept", 9, topic_id=topic_id, session_epoch=0))

    talk.restart()
    talk.led("kept", [0, 1])
    talk.settle()

    talk.ask("metadata", by_name("kept"))
    talk.ask("earliest", list_offsets("kept", EARLIEST))
    talk.ask("latest", list_offsets("kept", LATEST))
    talk.ask("by time", list_offsets("kept", 0))
    talk.ask("of the empty partition", list_offsets("kept", LATEST, partition=1))
    talk.ask("producers", producers_of(("kept", 0)))
    talk.ask("sent again", produce("kept", sent, topic_id=topic_id))
    more = batch(b"z", at_ms=talk.base_ms, producer=(producer, 0, 2))
    talk.ask("sent more", produce("kept", more, topic_id=topic_id))
    talk.ask("read", fetch("kept", 4, topic_id=topic_id))
    again = fetch("kept", 9, topic_id=topic_id, session_id=opened.session_id, session_epoch=1)
    talk.ask("the session", again)
    talk.ask("settings of the topic", describe(TOPIC, "kept", "segment.bytes", "retention.ms", synonyms=True))
    talk.ask("settings of the broker", describe(BROKER, "1", "message.max.bytes", synonyms=True))
    talk.until(init(), 5, lambda answer: answer.error_code == 0)
    talk.ask("another producer", init())


@RESTARTS.story
def epochs_after_restarts(talk: Talk) -> None:
    topic_id = talk.create("led-again")
    fill(talk, "led-again")

    talk.restart()
    talk.led("led-again", [0])
    talk.settle()

    talk.ask("metadata", by_name("led-again"))
    for epoch in range(-1, 5):
        talk.ask(f"end of epoch {epoch}, nothing written", epoch_end("led-again", epoch))
    fill(talk, "led-again")
    for epoch in range(-1, 5):
        talk.ask(f"end of epoch {epoch}", epoch_end("led-again", epoch))
        talk.ask(f"current epoch {epoch}, end", epoch_end("led-again", 0, current=epoch))
        talk.ask(f"current epoch {epoch}, list", list_offsets("led-again", LATEST, epoch=epoch))
        asked = fetch("led-again", 9, topic_id=topic_id, current_leader_epoch=epoch)
        talk.ask(f"current epoch {epoch}, fetch", asked)
        for offset in (5, 9, 12):
            asked = fetch("led-again", offset, topic_id=topic_id, last_fetched_epoch=epoch)
            talk.ask(f"last fetched epoch {epoch} at {offset}", asked)
    talk.ask("the epoch of the first record", list_offsets("led-again", EARLIEST))
    talk.ask("the epoch of a later record", list_offsets("led-again", talk.base_ms + 2_000))
    talk.ask("the epoch of the end", list_offsets("led-again", LATEST))
