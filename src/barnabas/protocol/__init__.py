"""The wire, without sockets: framing, headers, every message at every version, error codes.

schema/ turns declarations into codecs, messages/ declares requests and responses, stored/ declares
what is kept inside log records. Nothing here does IO or reads a clock.
"""
