"""`python -m ensue`: the same as the command `ensue`. It imports nothing from the current folder.
(Python itself would, before these lines, take an `ensue` in that folder for this package.)"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]

    from ensue.cli import main

    main()
