# SPDX-License-Identifier: Apache-2.0
"""Pages of lists that Tacker answers as a whole."""

from horizon import tables
from horizon.utils import functions


#: Rows of a table without pages; Horizon takes 5 ms for each.
MOST_ROWS = 100


class PagedView(tables.PagedTableMixin, tables.DataTableView):
    """A searched table, with as many rows as the user's settings say."""

    template_name = 'clickos/table.html'

    def page(self, rows):
        """Return the rows that are looked for, from the query's marker on.

        :param rows: all, each with an id as the table's get_object_id tells
        """
        table, size = self.get_table(), functions.get_page_size(self.request)
        rows = table.search.found(rows)
        at = {str(table.get_object_id(row)): i for i, row in enumerate(rows)}
        query, meta = self.request.GET, table._meta
        after = at.get(query.get(meta.pagination_param), -1) + 1
        before = at.get(query.get(meta.prev_pagination_param))
        start = after if before is None else max(0, before - size)
        self._has_prev_data = start > 0
        self._has_more_data = start + size < len(rows)
        return rows[start:start + size]
