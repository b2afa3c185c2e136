"""Usage: set_version.py VERSION. Sets the version of the package."""

import pathlib
import re
import sys

package = pathlib.Path("textkit/__init__.py")
package.write_text(re.sub(r'(__version__ = ").*(")', rf"\g<1>{sys.argv[1]}\2", package.read_text()))
