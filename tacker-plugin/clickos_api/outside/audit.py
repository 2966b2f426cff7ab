# SPDX-License-Identifier: Apache-2.0
"""Notifications of what callers changed, for an audit.

``[oslo_messaging_notifications] driver`` and ``topics`` lead them; without a
driver nothing is sent. They do not contain values of handlers.
"""

import threading

from oslo_log import log as logging
import oslo_messaging as messaging

LOG = logging.getLogger(__name__)

PREFIX = 'clickos.'


class Audit:
    """The notifier of this service."""

    def __init__(self, conf):
        self._conf = conf
        self._notifier = None
        self._making = threading.Lock()

    def notify(self, context, event, payload):
        """Notify of a change; a failure is only logged.

        :param context: of the caller
        :param event: such as handler.write
        :param payload: plain data
        """
        caller = {'user_id': context.user_id,
                  'project_id': context.project_id,
                  'request_id': context.request_id}
        try:
            self._connected().info({}, PREFIX + event,
                                   {'initiator': caller, **payload})
        except Exception:
            LOG.exception('No notification of %s', event)

    def _connected(self):
        """Return the notifier, made after the WSGI server forked."""
        with self._making:
            if self._notifier is None:
                self._notifier = messaging.Notifier(
                    messaging.get_notification_transport(self._conf),
                    publisher_id='clickos-api')
            return self._notifier
