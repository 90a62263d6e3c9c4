"""Consumer groups of KIP-848: the server assigns, members follow at their own pace.

groups.py is the door. heartbeat.py answers the members' heartbeats; what a member's news do to its group is
in steps.py, target.py (who should have what) and reconcile.py (who may have it yet). leaving.py takes members
out. group.py is the state that records tell of, and replay.py alone changes it. migration.py turns classic
groups into consumer groups and back; classic_members.py answers those who still speak the old protocol.
"""
