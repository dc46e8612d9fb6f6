"""Makes ``python -m kblrn_pyg.cli`` the same as ``kblrn``."""

import sys

from kblrn_pyg.cli.main import main

sys.exit(main())
