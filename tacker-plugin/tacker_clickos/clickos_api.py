# SPDX-License-Identifier: Apache-2.0
"""clickos-api of a VIM, with errors as Tacker shows them."""

import contextlib

from clickos_client import api
from keystoneauth1 import exceptions as ka_exceptions
from oslo_log import log as logging

from tacker_clickos import exception

LOG = logging.getLogger(__name__)

_MAX_CODE = 64
_MAX_MESSAGE = 4000


class Client(object):
    """Handlers and desired state of the servers of one VIM.

    :param connection: openstacksdk connection of the VIM
    """

    def __init__(self, connection):
        self._client = api.Client(
            connection.session,
            region_name=connection.config.get_region_name() or None,
            user_agent='tacker-clickos')

    def write(self, server_id, writes):
        """Write handlers, all or none; return the new revision.

        :param writes: [[handler, value]]
        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.write_many(server_id, writes)

    def read(self, server_id, handler):
        """Return the value of a handler.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.read(server_id, handler)

    def desired_writes(self, server_id):
        """Return [[handler, value]] written since the guest was configured.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.desired_state(server_id)

    def forget(self, server_id):
        """Drop the desired state of a server that goes away.

        A failure leaves clickos-api one row too many, so it is only logged.
        """
        try:
            with _translated():
                self._client.delete_desired_state(server_id)
        except exception.ClickOSError as error:
            LOG.info('Desired state of server %s is not dropped: %s',
                     server_id, error)


@contextlib.contextmanager
def _translated():
    try:
        yield
    except api.ClickOSError as error:
        raise exception.HandlerRefused(
            error.code[:_MAX_CODE], error.message[:_MAX_MESSAGE],
            error.status)
    except ka_exceptions.ClientException as error:
        raise exception.ApiUnavailable(reason=str(error)[:_MAX_MESSAGE])
