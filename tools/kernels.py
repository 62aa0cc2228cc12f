"""What every notebook kernel needs, however it is started.

Called by the build of the book, by the tests and by `tools/notebooks.py`.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / "_build" / "kernels"
QUIET = "c = get_config()\nc.IPKernelApp.log_level = 40\n"


def prepare():
    """Set the environment that kernels inherit.

    - `lib` by an absolute path, since a kernel starts in its notebook's folder;
    - settings of our own for IPython and Matplotlib, so that a reader's cannot
      change a result, and no start-up message of the kernel;
    - Matplotlib's font cache made beforehand: made inside a notebook it can
      print a message, and a message on the page fails the build.
    """
    first = [str(ROOT / "lib")]
    rest = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = first + [path for path in rest if path and path not in first]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ.pop("MPLBACKEND", None)
    os.environ["IPYTHONDIR"] = str(STATE / "ipython")
    os.environ["MPLCONFIGDIR"] = str(STATE / "matplotlib")
    profile = STATE / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(QUIET)
    (STATE / "matplotlib").mkdir(exist_ok=True)
    import matplotlib.font_manager  # noqa: F401
