"""The Spark job of `barnabas demo`: a typical pipeline and the program that runs it."""
