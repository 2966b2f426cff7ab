# SPDX-License-Identifier: Apache-2.0
"""Client of clickos-api, found in the VIM's service catalogue."""

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ka_exceptions
from oslo_log import log as logging

from tacker_clickos import exception

LOG = logging.getLogger(__name__)

SERVICE_TYPE = 'clickos'
_MAX_MESSAGE = 4000


class Client(object):
    """Handlers and desired state of the servers of one VIM.

    :param connection: openstacksdk connection of the VIM
    """

    def __init__(self, connection):
        self._adapter = adapter.Adapter(
            session=connection.session, service_type=SERVICE_TYPE,
            region_name=connection.config.get_region_name() or None,
            user_agent='tacker-clickos', raise_exc=False)

    def write(self, server_id, writes):
        """Write handlers, all or none; return the new revision.

        :param writes: [[handler, value]]
        :raises: HandlerRefused, ApiUnavailable
        """
        answer = self._request('POST', '/v1/servers/%s/handlers' % server_id,
                               json={'writes': writes})
        return answer.get('revision', 0)

    def desired_writes(self, server_id):
        """Return [[handler, value]] written since the guest was configured.

        :raises: HandlerRefused, ApiUnavailable
        """
        answer = self._request(
            'GET', '/v1/servers/%s/desired-state' % server_id)
        return [list(pair) for pair in answer.get('writes', [])]

    def forget(self, server_id):
        """Drop the desired state of a server that goes away.

        What is left costs clickos-api a row, so a failure is only logged.
        """
        try:
            self._request('DELETE',
                          '/v1/servers/%s/desired-state' % server_id)
        except exception.ClickOSError as error:
            LOG.info('Desired state of server %s is not dropped: %s',
                     server_id, error)

    def _request(self, method, path, **kwargs):
        try:
            response = self._adapter.request(path, method, **kwargs)
        except ka_exceptions.ClientException as error:
            raise exception.ApiUnavailable(reason=str(error))
        if response.status_code >= 400:
            raise _refused(response)
        return response.json() if response.content else {}


def _refused(response):
    try:
        error = response.json()['error']
        code, message = str(error['code']), str(error['message'])
    except (KeyError, TypeError, ValueError):
        code, message = 'http-%d' % response.status_code, response.text
    return exception.HandlerRefused(code[:64], message[:_MAX_MESSAGE],
                                    response.status_code)
