"""The controller, which decides all changes of the cluster metadata on the leader of the quorum.

Every decision is a function of the image, a request and facts, and returns records and a response; it changes
nothing itself. controller.py has the latest image and the periodic work; shell.py, the only file here with
asyncio, responds after the records are committed.
"""
