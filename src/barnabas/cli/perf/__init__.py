"""The parts of producer-perf-test and consumer-perf-test."""
