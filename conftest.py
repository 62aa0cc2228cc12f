"""Set-up shared by the tests, the doctests and the notebooks under `pytest --nbval`.

It stands at the root, not in `tests/`, so that the notebooks find it as well.
"""

import hypothesis
import matplotlib

import kernels

kernels.prepare()
matplotlib.use("agg")  # here only: kernels keep the backend of notebooks

# The same examples on every run and every machine; for new ones:
#   pytest --hypothesis-profile explore
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("steady")
