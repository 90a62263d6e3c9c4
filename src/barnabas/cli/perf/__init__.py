"""What producer-perf-test and consumer-perf-test reckon and print, without a broker."""
