"""`python -m actors.cli` is `onward`."""

import sys

from . import main

sys.exit(main())
