"""Decides what the cluster becomes. Runs on the leader of the quorum.

Every decision is a function of the image, a request and facts that are handed in, and returns records and an
answer; nothing changes by deciding. controller.py holds the latest image and knows what is due; shell.py, the
only file here with asyncio, has the records committed before it answers.
"""
