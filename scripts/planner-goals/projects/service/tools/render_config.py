"""Usage: render_config.py ENVIRONMENT. Writes build/ENVIRONMENT.json from the base and the environment."""

import json
import pathlib
import sys

environment = sys.argv[1]
base, own = (json.loads(pathlib.Path(f"config/{name}.json").read_text()) for name in ["base", environment])
pathlib.Path("build").mkdir(exist_ok=True)
pathlib.Path(f"build/{environment}.json").write_text(json.dumps(base | own, indent=1) + "\n")
