"""Java from pip, for a machine that has none: use_java() before the first session."""

from barnabas.base.java import NoJava, use_java

__all__ = ["NoJava", "use_java"]
