"""Brokers that were told not to let groups change their protocol, or not to have the new one at all."""

from barnabas.protocol.messages.cluster import ApiVersionsRequest
from differential.broker.consumer_requests import AT_ONCE, IN_ORDER, Consumer, comes, create, heartbeat
from differential.broker.group_migration import assigned
from differential.broker.group_requests import describe, describe_consumer, join, ready, subscription
from differential.broker.talk import Family, Talk

STAYING = Family(
    "groups-that-stay",
    settings={**AT_ONCE, "group.consumer.migration.policy": "disabled"},
    settings_of_kafka=IN_ORDER,
)
CLASSIC_ONLY = Family("classic-only", settings={"group.coordinator.rebalance.protocols": "classic"})


@STAYING.story
def nobody_goes_over(talk: Talk) -> None:
    ready(talk)
    create(talk, "fixed", 2)
    classic = assigned(talk, "classic", "classic", "fixed", 0, 1)
    talk.same("a consumer comes", comes("classic", "m1", "fixed"))
    classic.beat("the classic member is well")
    modern = Consumer(talk, "modern", "m1")
    modern.join("a consumer", "fixed")
    modern.beat("it has all")
    talk.same("a classic member comes", join("modern", protocols={"range": subscription("fixed")}))
    modern.beat("the consumer is well")
    talk.ask("described", describe_consumer("modern"))
    classic.leave("the classic member leaves")
    talk.ask("a consumer comes to an empty group", comes("classic", "m1", "fixed"))
    modern.leave("the consumer leaves")
    talk.ask(
        "a classic member comes to an empty group",
        join("modern", protocols={"range": subscription("fixed")}),
        3,
    )
    talk.ask("described at last", describe("modern", "classic"))


@CLASSIC_ONLY.story
def no_consumer_groups(talk: Talk) -> None:
    ready(talk)
    talk.create("old")
    software = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
    keys = {one.api_key: one.max_version for one in talk.quietly(software, 4).api_keys}
    talk.keep("keys", [keys.get(68), keys.get(69)])
    talk.same("a consumer comes", comes("old", "m1", "old"))
    talk.same("a heartbeat", heartbeat("old", "m1", 1))
    talk.same("no group", comes("", "m1", "old"))
    talk.same("described", describe_consumer("old", operations=True))
    talk.ask("described without a name", describe_consumer(""))
    talk.ask("a classic member comes", join("old"), 3)
