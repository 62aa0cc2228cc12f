"""A bibliography whose entries are headed by their keys.

The tables of data and the docstrings of the library name their sources
by these keys, so a reader looks them up as they stand.
"""

from pybtex.plugin import register_plugin
from pybtex.style.formatting.alpha import Style
from pybtex.style.labels import BaseLabelStyle


class KeyLabels(BaseLabelStyle):
    """Each entry is labelled with its key."""

    def format_labels(self, sorted_entries):
        """The labels, in the order of the entries."""
        return [entry.key for entry in sorted_entries]


class ByKey(Style):
    """Sorted by author and year, labelled with the key."""

    default_label_style = "key"


def setup(app):
    """Sphinx calls this when it loads the extension."""
    register_plugin("pybtex.style.labels", "key", KeyLabels)
    register_plugin("pybtex.style.formatting", "by_key", ByKey)
    return {"parallel_read_safe": True}
