# SPDX-License-Identifier: Apache-2.0
"""Actions on rows: they say why a service refuses, and may ask before.

Horizon itself shows no reason. Its question names the rows, and comes before
actions of the type "danger"; asks.js brings it before others that ask.
"""

from django.utils.translation import gettext as _
from horizon import exceptions
from horizon import messages
from horizon import tables

from clickos_dashboard import exceptions as our_exceptions


def _told(action, request, datum_id, act):
    """Act on one row; show the reason of a refusal next to its name."""
    try:
        act(request, datum_id)
    except our_exceptions.RECOVERABLE as exc:
        row = action.table.get_object_by_id(datum_id)
        messages.error(request, _('%(action)s, %(name)s: %(reason)s') % {
            'action': action.action_present(1),
            'name': action.table.get_object_display(row) or datum_id,
            'reason': exc})
        raise exceptions.HandledException(
            (type(exc), exc, exc.__traceback__))


class Batch(tables.BatchAction):
    """An action on rows; ``act`` does it for one."""

    #: the action ends something, but is not red
    asks = False

    def get_default_attrs(self):
        """Mark an action that asks, for asks.js."""
        mark = {'data-clickos-asks': 'true'} if self.asks else {}
        return {**super().get_default_attrs(), **mark}

    def act(self, request, datum_id):
        """Act on one row."""
        raise NotImplementedError

    def action(self, request, datum_id):
        """Act on one row, and tell of a refusal."""
        _told(self, request, datum_id, self.act)


class Delete(tables.DeleteAction):
    """Deletes rows; ``delete`` deletes one."""

    def action(self, request, obj_id):
        """Delete one row, and tell of a refusal."""
        _told(self, request, obj_id, self.delete)
