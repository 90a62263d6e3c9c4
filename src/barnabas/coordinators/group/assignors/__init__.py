"""Who gets what: the assignors that a coordinator has itself, as Kafka 4.3's of the same names.

assign() takes members, what they subscribe to and what each has been given before, and says what each is to
have: its target assignment. How members get there without two owning the same at once is not here, nor which
assignor a group uses. metadata_hash.py has the number by which a group sees that its topics have changed.
"""

from barnabas.coordinators.group.assignors.by_name import ASSIGNORS, assign
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec

__all__ = ["ASSIGNORS", "Assignment", "MemberSpec", "TopicSpec", "assign"]
