"""Consumer groups of KIP-848: the coordinator assigns, members reconcile at their own pace.

heartbeat.py answers heartbeats; member_update.py applies a member's changes to its group, with target.py
(target assignment) and reconcile.py (next step towards it). removal.py removes members. group.py is the
replicated state, which only replay.py changes. migration.py converts classic groups to consumer groups and
back; classic_members.py serves members that still use the classic protocol.
"""
