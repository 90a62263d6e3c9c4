"""Whether Spark can run here: it comes with pip, and Java does not."""

import os
import shutil


def why_no_spark() -> str | None:
    if shutil.which("java") or "JAVA_HOME" in os.environ:
        return None
    return "Spark needs a JRE, and there is neither `java` nor JAVA_HOME here"
