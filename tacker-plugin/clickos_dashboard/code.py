# SPDX-License-Identifier: Apache-2.0
"""Texts of the Click language on pages.

Horizon replaces {$ by {% as it escapes, since Angular evaluates what {$ $}
encloses. "{$" is usual in Click: it begins the parameters of a compound
element. So these texts keep it, in elements that Angular leaves alone.
"""

import html

from django import forms
from django.forms import utils

#: The attribute by which Angular leaves an element and its content alone.
LEFT_ALONE = 'ng-non-bindable'


class Escaped(str):
    """A text that templates take as it is."""

    def __html__(self):
        """Return the markup, which is the text."""
        return self


def escaped(text):
    """Return a text for an element with the attribute LEFT_ALONE."""
    return Escaped(html.escape(str(text)))


class CodeArea(forms.Textarea):
    """A field whose text stays as it is."""

    def render(self, name, value, attrs=None, renderer=None):
        """Return the element."""
        found = self.build_attrs(self.attrs, {
            **(attrs or {}), 'name': name, LEFT_ALONE: True})
        # A browser drops the first line break.
        return Escaped(
            f'<textarea{utils.flatatt(found)}>\n{escaped(value or "")}'
            '</textarea>')
