# SPDX-License-Identifier: Apache-2.0
"""Reads a page as Angular does: which texts it would evaluate."""

from html import parser

from clickos_dashboard import code

#: Elements without an end.
_VOID = frozenset(('area', 'base', 'br', 'col', 'embed', 'hr', 'img',
                   'input', 'link', 'meta', 'source', 'track', 'wbr'))
#: Angular evaluates nothing there: they stand outside ng-app.
_OUTSIDE = ('head',)
#: Horizon gives Angular each of these alone, when it has changed.
_ROOTS = frozenset(('datatable', 'tab-pane', 'modal'))


class Reader(parser.HTMLParser):
    """Collects what stands where.

    :ivar evaluated: texts and values of attributes that Angular evaluates
    :ivar tags: names of all elements
    :ivar handlers: attributes that hold a script
    """

    def __init__(self, page):
        super().__init__()
        self.evaluated, self.tags, self.handlers = [], [], []
        self._open = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Enter an element."""
        names = dict(attrs)
        self.tags.append(tag)
        self.handlers += [f'{tag} {name}' for name in names
                          if name.startswith('on')]
        is_root = _ROOTS & set((names.get('class') or '').split())
        is_free = self._is_free() or bool(is_root)
        if tag in _OUTSIDE or code.LEFT_ALONE in names:
            is_free = False
        if is_free:
            self.evaluated += [value for value in names.values() if value]
        if tag not in _VOID:
            self._open.append((tag, is_free))

    def handle_startendtag(self, tag, attrs):
        """Enter an element, which has no end in HTML either."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        """Leave an element, and those inside that have no end."""
        names = [name for name, _is_free in self._open]
        if tag in names:
            del self._open[len(names) - 1 - names[::-1].index(tag):]

    def handle_data(self, data):
        """Take a text."""
        if self._is_free():
            self.evaluated.append(data)

    def _is_free(self):
        return not self._open or self._open[-1][1]
