"""Whether Spark can run here: it comes with pip, and Java may."""

from barnabas.base.java import NoJava, use_java


def why_no_spark() -> str | None:
    """None if it can; then what the tests start finds Java, too."""
    try:
        use_java()
    except NoJava as none:
        return str(none)
    return None
