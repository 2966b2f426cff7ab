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

    def load_cells(self, datum=None):
        """Load the row; its name is a text in the question of an action.

        Horizon escapes it twice, since its question takes it as markup. Ours
        does not (asks.js).
        """
        super().load_cells(datum)
        display = self.table.get_object_display(self.datum)
        if display:
            self.attrs['data-display'] = display
