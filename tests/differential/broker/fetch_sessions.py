"""Incremental fetch sessions (KIP-227): made, used, changed, mistaken, closed."""

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.fetch import FetchRequest, ForgottenTopic
from differential.broker.batches import batch
from differential.broker.cluster import NO_TOPIC
from differential.broker.sending import fetch, fetch_partition, send
from differential.broker.talk import Family, Talk

SESSIONS = Family("fetch-sessions")
INITIAL, FINAL = 0, -1


def opened(talk: Talk, step: str, request: FetchRequest, version: int) -> int:
    """Open a session with this request and return its id."""
    request.session_epoch = INITIAL
    answer = talk.ask(step, request, version)
    session: int = answer.session_id
    return session


def again(session: int, epoch: int) -> FetchRequest:
    """The session's next request, with nothing changed."""
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, session_id=session, session_epoch=epoch, topics=[]
    )


def put(talk: Talk, name: str, partition: int = 0) -> None:
    send(talk, name, batch(b"more", at_ms=talk.base_ms), partition=partition)


def forget(request: FetchRequest, name: str, topic_id: Uuid, *partitions: int) -> FetchRequest:
    gone = ForgottenTopic(topic=name, topic_id=topic_id, partitions=list(partitions))
    request.forgotten_topics_data = [*request.forgotten_topics_data, gone]
    return request


@SESSIONS.story
def a_session(talk: Talk) -> None:
    for version in (7, 12, 13, 18):
        name = f"session-{version}"
        topic_id = talk.create(name, 3)
        put(talk, name)
        parts = [fetch_partition(0), fetch_partition(1)]
        session = opened(
            talk, f"opened v{version}", fetch(name, topic_id=topic_id, partitions=parts), version
        )
        talk.ask(f"nothing moved but the offset stays v{version}", again(session, 1), version)
        moved = again(session, 2)
        moved.topics = fetch(name, 1, topic_id=topic_id).topics
        talk.ask(f"moved on v{version}", moved, version)
        talk.ask(f"nothing new v{version}", again(session, 3), version)
        put(talk, name, 1)
        talk.ask(f"something new v{version}", again(session, 4), version)
        added = again(session, 5)
        added.topics = fetch(name, 0, topic_id=topic_id, partition=2).topics
        talk.ask(f"a partition added v{version}", added, version)
        talk.ask(f"one forgotten v{version}", forget(again(session, 6), name, topic_id, 1), version)
        put(talk, name, 2)
        talk.ask(f"after the forgetting v{version}", again(session, 7), version)
        talk.ask(f"closed v{version}", again(session, FINAL), version)
        talk.ask(f"after the end v{version}", again(session, 8), version)


@SESSIONS.story
def mistakes(talk: Talk) -> None:
    topic_id = talk.create("mistaken", 2)
    put(talk, "mistaken")
    for version in (7, 12, 18):
        session = opened(talk, f"opened v{version}", fetch("mistaken", topic_id=topic_id), version)
        talk.ask(f"epoch too high v{version}", again(session, 2), version)
        talk.ask(f"epoch of before v{version}", again(session, 0), version)
        talk.ask(f"the right epoch after it v{version}", again(session, 1), version)
        talk.ask(f"unknown session v{version}", again(123_456_789, 1), version)
        talk.ask(f"negative session v{version}", again(-5, 1), version)
        talk.ask(f"no session, epoch 1 v{version}", again(0, 1), version)
        talk.ask(f"no session, final epoch v{version}", again(0, FINAL), version)
        talk.ask(f"epoch -2 v{version}", again(session, -2), version)


@SESSIONS.story
def errors_inside(talk: Talk) -> None:
    for version in (7, 12, 13, 18):
        name = f"inside-{version}"
        topic_id = talk.create(name)
        put(talk, name)
        asked = fetch(name, topic_id=topic_id)
        asked.topics[0].partitions.append(fetch_partition(5))
        asked.topics += fetch("nobody-made-this", topic_id=NO_TOPIC).topics
        session = opened(talk, f"opened with unknown ones v{version}", asked, version)
        talk.ask(f"they are told again v{version}", again(session, 1), version)
        late = again(session, 2)
        late.topics = fetch(name, 77, topic_id=topic_id).topics
        talk.ask(f"out of range v{version}", late, version)
        talk.ask(f"told again v{version}", again(session, 3), version)
        strange = forget(again(session, 4), "nobody-made-this", NO_TOPIC, 0)
        talk.ask(f"forgetting an unknown one v{version}", strange, version)
        talk.ask(
            f"forgetting what was not there v{version}", forget(again(session, 5), name, topic_id, 9), version
        )


@SESSIONS.story
def a_topic_that_goes_and_comes_back(talk: Talk) -> None:
    for version in (12, 18):
        name = f"comes-and-goes-{version}"
        topic_id = talk.create(name)
        put(talk, name)
        session = opened(talk, f"opened v{version}", fetch(name, topic_id=topic_id), version)
        talk.delete(name)
        talk.ask(f"the topic is gone v{version}", again(session, 1), version)
        talk.ask(f"without a session v{version}", fetch(name, topic_id=topic_id), version)
        new_id = talk.create(name)
        put(talk, name)
        talk.ask(f"a new one has the name v{version}", again(session, 2), version)
        changed = again(session, 3)
        changed.topics = fetch(name, topic_id=new_id).topics
        talk.ask(f"the new one is asked v{version}", changed, version)
        talk.ask(f"both ids are in the session v{version}", again(session, 4), version)


@SESSIONS.story
def empty_sessions(talk: Talk) -> None:
    empty = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=[])
    session = opened(talk, "opened with nothing", empty, 18)
    talk.ask("used", again(session, 1), 18)
    topic_id = talk.create("emptied")
    session = opened(talk, "opened with one", fetch("emptied", topic_id=topic_id), 18)
    talk.ask("all forgotten", forget(again(session, 1), "emptied", topic_id, 0), 18)
    talk.ask("after that", again(session, 2), 18)


@SESSIONS.story
def a_session_without_ids_and_one_with(talk: Talk) -> None:
    topic_id = talk.create("two-ways")
    put(talk, "two-ways")
    session = opened(talk, "opened by name", fetch("two-ways", topic_id=topic_id), 12)
    talk.ask("used by id", again(session, 1), 13)
    session = opened(talk, "opened by id", fetch("two-ways", topic_id=topic_id), 13)
    talk.ask("used by name", again(session, 1), 12)
