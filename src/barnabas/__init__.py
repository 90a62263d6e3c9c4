"""Barnabas: an event-streaming platform that speaks Kafka's protocol and keeps Kafka's log format."""

__version__ = "0.1.0.dev0"
