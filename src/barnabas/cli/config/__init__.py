"""The parts of `barnabas configs`: entities, changes, and one module per family of entities."""
