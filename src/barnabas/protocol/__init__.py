"""Kafka's wire protocol without sockets: framing, headers, every message at every version, error codes.

schema/ turns declarations into codecs, messages/ declares requests and responses, stored/ declares the
content of log records. Nothing here does IO or reads a clock.
"""
