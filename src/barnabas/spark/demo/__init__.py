"""The Spark job of `barnabas demo`: a pipeline as users write it, and the program that runs it."""
