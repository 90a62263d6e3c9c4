"""Consumer groups of KIP-848: the coordinator assigns, members reconcile at their own pace.

groups.py is the entry point. heartbeat.py answers heartbeats; steps.py applies a member's changes to its
group, with target.py (target assignment) and reconcile.py (next step towards it). leaving.py removes members.
group.py is the replicated state, which only replay.py and live.py change. migration.py converts classic
groups to consumer groups and back; classic_members.py serves members that still use the classic protocol.
"""
