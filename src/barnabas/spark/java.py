"""Java from pip, for a machine that has none, or an old one: use_java() before the first session."""

from barnabas.base.java import NoJava, use_java

__all__ = ["NoJava", "use_java"]
