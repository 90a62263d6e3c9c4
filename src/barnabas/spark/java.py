"""Java from pip for a machine without a recent one: call use_java() before the first session."""

from barnabas.base.java import NoJava, use_java

__all__ = ["NoJava", "use_java"]
