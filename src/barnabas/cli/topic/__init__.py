"""The parts of `barnabas topics`: actions, name patterns, option values, descriptions."""
