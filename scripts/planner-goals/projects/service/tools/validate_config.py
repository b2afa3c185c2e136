"""Usage: validate_config.py FILE... Prints the port and the log level of each rendered file, and fails for invalid ones."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from service import settings

for path in sys.argv[1:]:
    found = settings(path)
    if not 0 < found["port"] < 65536 or found["log"] not in ["debug", "info", "warn"]:
        sys.exit(f"{path}: invalid settings")
    print(f"{pathlib.Path(path).stem}: port {found['port']}, log {found['log']}")
