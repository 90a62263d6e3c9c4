"""Make the helpers beside the property tests importable: mutations.py is shared by several of them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
