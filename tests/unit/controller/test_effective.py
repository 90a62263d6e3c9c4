"""The precedence of several values of a setting."""

import pytest

from barnabas.controller.effective import TopicRules, broker_config, effective_values
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from support.controllers import ActiveController

UNCLEAN = "unclean.leader.election.enable"
# By descending precedence, each with its source number in DescribeConfigs.
TOPIC, NODE, CLUSTER, FILE, DEFAULT = range(1, 6)


def with_unclean(levels: dict[int, str]) -> ActiveController:
    world = ActiveController(static_config={UNCLEAN: levels[FILE]} if FILE in levels else {})
    world.with_brokers(1).with_topic("orders", [1])
    for level, (kind, name) in {TOPIC: (2, "orders"), NODE: (4, "1"), CLUSTER: (4, "")}.items():
        if level in levels:
            world.write_record(
                ConfigRecord(resource_type=kind, resource_name=name, name=UNCLEAN, value=levels[level])
            )
    return world


@pytest.mark.parametrize("nearest", [TOPIC, NODE, CLUSTER, FILE])
@pytest.mark.parametrize("value", ["true", "false"])
def test_the_nearest_value_counts(nearest: int, value: str) -> None:
    other = "false" if value == "true" else "true"
    levels = {level: value if level == nearest else other for level in range(nearest, DEFAULT)}
    world = with_unclean(levels)
    settings = world.controller.settings

    assert TopicRules(world.image, settings).allows_unclean("orders") is (value == "true")
    own = {UNCLEAN: levels[TOPIC]} if nearest == TOPIC else {}
    shown = {one.name: one for one in effective_values(own, world.image, settings)}[UNCLEAN]
    assert (shown.value, shown.source) == (value, nearest)
    if nearest != TOPIC:
        assert broker_config(world.image, settings)[UNCLEAN] == value


def test_unset_settings_have_their_defaults() -> None:
    world = with_unclean({})
    rules = TopicRules(world.image, world.controller.settings)

    assert not rules.allows_unclean("orders")
    assert rules.min_isr(world.image.topics["orders"]) == 1
