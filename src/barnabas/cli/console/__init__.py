"""The parts of console-producer and console-consumer: lines, records, formatters, assignments."""
