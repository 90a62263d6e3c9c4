"""Assignments of large groups, computed off the loop while their members continue."""

from barnabas.coordinators.group.consumer.target import ASSIGNED_AT_ONCE_MAX, AssignmentJob
from support.group.consumer_stories import Consumer, ConsumerStory
from support.group.stories import GROUP

TOPICS = {f"orders-{number}": 1 for number in range(ASSIGNED_AT_ONCE_MAX // 3)}


def large_story() -> tuple[ConsumerStory, list[Consumer]]:
    """Five members that subscribe to different topics, of which only the first ones have some."""
    story = ConsumerStory(topics=TOPICS)
    story.shard.assigning.on_wanted = lambda: None
    names = list(TOPICS)
    members = [story.joins(f"m-{number}", topics=names[number:]) for number in range(5)]
    return story, members


def job_of(story: ConsumerStory) -> AssignmentJob:
    job = story.shard.assigning.begin(GROUP)
    assert job is not None
    return job


def finish(story: ConsumerStory, job: AssignmentJob) -> None:
    story.stage.carry_out(story.shard.assigning.finish(job, job.compute(), story.stage.now))
    story.shard.assigning.wanted.clear()


def test_a_member_of_a_large_group_joins_without_partitions_and_gets_them_later() -> None:
    story, members = large_story()
    assert members[4].owned == {}
    assert list(story.shard.assigning.wanted) == [GROUP]
    assert story.group.assignment_epoch < story.group.epoch

    finish(story, job_of(story))
    assert story.group.assignment_epoch == story.group.epoch
    story.settles(*members)

    assert sum(len(held) for member in members for held in member.owned.values()) == len(TOPICS)
    assert max(len(member.owned) for member in members) - min(len(member.owned) for member in members) <= 1


def test_a_member_that_left_during_the_computation_gets_no_assignment() -> None:
    story, members = large_story()
    job = job_of(story)

    story.leaves(members[4])
    finish(story, job)

    assert "m-4" not in story.group.targets
    assert story.group.assignment_epoch == job.epoch < story.group.epoch


def test_a_static_member_replaced_during_the_computation_passes_on_its_target() -> None:
    story, _ = large_story()
    story.joins("static-1", topics=list(TOPICS)[7:], instance_id="i")
    old = Consumer("static-1", instance_id="i")
    job = job_of(story)

    story.leaves(old, epoch=-2)
    story.joins("static-2", topics=list(TOPICS)[7:], instance_id="i")
    finish(story, job)

    assert "static-1" not in story.group.targets
    assert len(story.group.targets["static-2"]) > 0


def test_an_outdated_assignment_is_dropped() -> None:
    story, _ = large_story()
    job = job_of(story)
    finish(story, job_of(story))
    before = len(story.stage.records)

    finish(story, job)

    assert len(story.stage.records) == before
    assert story.shard.assigning.begin(GROUP) is None


def test_small_groups_are_assigned_within_the_request() -> None:
    story = ConsumerStory()
    story.shard.assigning.on_wanted = lambda: None

    assert story.joins("a").partitions() == set(range(6))
    assert not story.shard.assigning.wanted
