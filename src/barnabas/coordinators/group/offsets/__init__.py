"""How far groups have come: offsets that were committed, and those that wait for the end of a transaction.

offsets.py is the door. record.py is the record of one commit; table.py holds what is committed, in little
memory, and pending.py what transactions have not ended yet. load.py reads a log quickly. What requests get
and what is written for them is decided in commits.py, reads.py and removal.py.
"""
