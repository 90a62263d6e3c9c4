"""Whether Spark and Java are installed."""

from barnabas.base.java import NoJava, use_java


def why_no_spark() -> str | None:
    """Return why Spark cannot run, or None; then Java is also on the path of started processes."""
    try:
        use_java()
    except NoJava as none:
        return str(none)
    return None
