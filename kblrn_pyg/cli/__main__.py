"""Makes ``python -m kblrn_pyg.cli`` the same as ``kblrn``, also under ``torchrun``."""

import os
import sys

from kblrn_pyg.cli.main import main
from kblrn_pyg.cli.options import has_several_processes

code = main()
if has_several_processes():
    # The exit of an interpreter destroys what torch keeps of a process group. Now and
    # then, it finds threads of it running, and aborts a process that has succeeded.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
sys.exit(code)
