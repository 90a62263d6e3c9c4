"""Every request and response of Kafka 4.3, declared once for all its versions, a file per API family.

A class's docstring lists the changes of each version; `from barnabas.protocol.apis import api` finds the
classes of a key.
"""
