"""python -m tollens: the same as the command tollens."""

import sys

from .program import main

sys.exit(main())
