# SPDX-License-Identifier: Apache-2.0
"""Rows of tables that Angular leaves alone.

Horizon's scripts give Angular a whole table again when a row has changed.
So the rows need the attribute in addition to the page.
"""

from horizon import tables

from clickos_dashboard import code


class Row(tables.Row):
    """A row of any of our tables."""

    def get_default_attrs(self):
        """Return Horizon's attributes and ours."""
        return {**super().get_default_attrs(), code.LEFT_ALONE: True}
