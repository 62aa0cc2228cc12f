"""Find a Chromium: prints its path, or says that there is none and returns 1."""

import os
import shutil
import sys

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def chromium():
    """Path of an installed Chromium, or None; $CHROMIUM comes first."""
    names = [os.environ.get("CHROMIUM", ""), *NAMES]
    return next(filter(None, map(shutil.which, filter(None, names))), None)


if __name__ == "__main__":
    found = chromium()
    print(found or "No Chromium here (nor in $CHROMIUM): no browser tests.")
    sys.exit(found is None)
