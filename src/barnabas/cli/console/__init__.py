"""What console-producer and console-consumer read and print, without a broker: lines, records, formatters."""
