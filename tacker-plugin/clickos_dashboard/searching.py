# SPDX-License-Identifier: Apache-2.0
"""The search of a list: words, and one of its states, in the address.

An address keeps them over pages, reloads and actions. Horizon searches, since
no service looks for words in all columns. It has the whole list for its pages.
"""

import functools

from django.utils import http
from django.utils.translation import gettext_lazy as _
from horizon import tables

#: Of what one types: characters, and words that all have to be there.
MAX_CHARACTERS, MAX_WORDS = 255, 16
#: What else of an address has to stay. A tab adds its own name.
_KEPT = ('guest',)


class Search(object):
    """The search of one table.

    :ivar text: the words as one typed them
    :ivar state: the value of the table's column of states, or nothing
    :ivar states: [(value, text)] of all rows
    """

    def __init__(self, table):
        self._table = table
        query = table.request.GET
        self.text_name = f'{table.name}_search'
        self.state_name = f'{table.name}_state'
        self.text = query.get(self.text_name, '').strip()[:MAX_CHARACTERS]
        self.state = query.get(self.state_name, '')[:MAX_CHARACTERS]
        self.kept = [(name, query[name]) for name in _KEPT if name in query]
        self.states = []

    @property
    def is_on(self):
        """Return whether anything is looked for."""
        return bool(self.text or self.state)

    @property
    def query(self):
        """Return the part of an address that repeats the search."""
        return http.urlencode([(name, value) for name, value in (
            (self.text_name, self.text), (self.state_name, self.state))
            if value])

    @property
    def everything(self):
        """Return the query of the list without a search."""
        return http.urlencode(self.kept)

    def found(self, rows):
        """Return the rows that are looked for, in their order."""
        column = self._table.columns.get(self._table.states_of)
        if column is not None:
            self.states = self._all_states(column, rows)
        words = self.text.casefold().split()[:MAX_WORDS]
        return [row for row in rows
                if (column is None or self.state in (
                    '', str(column.get_raw_data(row))))
                and self._has(row, words)]

    def _all_states(self, column, rows):
        found = {str(column.get_raw_data(row)): str(column.get_data(row))
                 for row in rows}
        if self.state:
            found.setdefault(self.state, self.state)
        return sorted(found.items(), key=lambda each: each[1])

    def _has(self, row, words):
        """Return whether a row shows each of the words somewhere."""
        if not words:
            return True
        shown = '\n'.join((
            str(self._table.get_object_id(row)),
            *(str(column.get_data(row)) for column
              in self._table.columns.values()
              if column.auto not in ('actions', 'multi_select')))).casefold()
        return all(word in shown for word in words)


class Searched(tables.DataTable):
    """A table with a search.

    :ivar states_of: name of the column whose values one can choose, or None
    :ivar nothing: what an empty list says
    """

    states_of = None
    nothing = _('No items to display.')

    @functools.cached_property
    def search(self):
        """The Search of the request."""
        return Search(self)

    def get_empty_message(self):
        """Say what to do next."""
        return _('Nothing in the list has this.') if self.search.is_on \
            else self.nothing

    def get_pagination_string(self):
        """Return the query of the next page, with the search."""
        return self._with_search(super().get_pagination_string())

    def get_prev_pagination_string(self):
        """Return the query of the page before, with the search."""
        return self._with_search(super().get_prev_pagination_string())

    def _with_search(self, marker):
        return '&'.join(filter(None, (self.search.query, marker)))
