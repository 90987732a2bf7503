"""`python -m swarmbo` is the command `swarmbo`."""

import sys

from swarmbo.cli import main

sys.exit(main())
