"""The server-side assignors, equivalent to those of Kafka 4.3.

assign() takes the members with their subscriptions and previous targets, and returns each member's target
assignment. Reconciliation and the choice of a group's assignor are elsewhere. metadata_hash.py has the hash
by which a group detects that its topics have changed.
"""

from barnabas.coordinators.group.assignors.assignor import ASSIGNORS, assign
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec

__all__ = ["ASSIGNORS", "Assignment", "MemberSpec", "TopicSpec", "assign"]
