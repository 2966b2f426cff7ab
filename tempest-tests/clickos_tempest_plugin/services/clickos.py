# SPDX-License-Identifier: Apache-2.0
"""The client of clickos-api."""

from urllib import parse

from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.services import base


class ClickOSClient(base.Client):
    """Handlers and desired state.

    :param kind: of every method: 'servers' or 'vnfs'
    """

    def list_handlers(self, guest_id, kind='servers'):
        """List the handlers."""
        return self.call('GET', f'v1/{kind}/{guest_id}/handlers',
                         200)[1]['handlers']

    def list_ports(self, guest_id, kind='servers'):
        """List the ports of a guest with their counters."""
        return self.call('GET', f'v1/{kind}/{guest_id}/ports',
                         200)[1]['ports']

    def list_events(self, guest_id, kind='servers'):
        """List reboots and failed starts, the newest first."""
        return self.call('GET', f'v1/{kind}/{guest_id}/events',
                         200)[1]['events']

    def read_handler(self, guest_id, name, kind='servers'):
        """Return a handler's value."""
        return self.call('GET', self._path(kind, guest_id, name),
                         200)[1]['value']

    def read_handlers(self, guest_id, names, kind='servers', **more):
        """Return {name: value, or the code of an error}."""
        found = self.call('POST', f'v1/{kind}/{guest_id}/reads', 200,
                          {'names': names, **more})[1]['values']
        return {each['name']: each['value'] if 'value' in each
                else each['error']['code'] for each in found}

    def write_handler(self, guest_id, name, value, kind='servers'):
        """Write a handler; return the revision."""
        return self._change('PUT', self._path(kind, guest_id, name),
                            {'value': value})

    def write_handlers(self, guest_id, writes, kind='servers'):
        """Write [[name, value], ...]; return the revision."""
        return self._change('POST', f'v1/{kind}/{guest_id}/handlers',
                            {'writes': writes})

    def replace_config(self, guest_id, text):
        """Replace the configuration of a running guest."""
        self._change('PUT', f'v1/servers/{guest_id}/configuration',
                     {'config': text})

    def show_desired_state(self, guest_id, kind='servers'):
        """Return {'revision': ..., 'writes': ...}."""
        state = self.call('GET', f'v1/{kind}/{guest_id}/desired-state',
                          200)[1]
        state.pop('number')   # grows with refused changes, too
        return state

    def create_secret(self, name, value):
        """Make a secret; return it."""
        return self.call('POST', 'v1/secrets', 201,
                         {'name': name, 'value': value})[1]['secret']

    def show_secret(self, secret_id):
        """Show a secret, without its value."""
        return self.call('GET', f'v1/secrets/{secret_id}', 200)[1]['secret']

    def delete_secret(self, secret_id):
        """Delete a secret."""
        self.call('DELETE', f'v1/secrets/{secret_id}', 204)

    def restore(self, guest_id, revision, kind='servers'):
        """Bring an earlier revision back; return the new one."""
        return self._change('POST', f'v1/{kind}/{guest_id}/desired-state',
                            {'revision': revision})

    def list_changes(self, guest_id, kind='servers'):
        """List the newest changes."""
        return self.call('GET', f'v1/{kind}/{guest_id}/changes',
                         200)[1]['changes']

    def show_change(self, guest_id, number, kind='servers'):
        """Return a change."""
        return self.call('GET', f'v1/{kind}/{guest_id}/changes/{number}',
                         200)[1]['change']

    def create_state(self, config, writes=()):
        """Make a state that user_data refers to; return its id."""
        return self.call('POST', 'v1/states', 201,
                         {'config': config, 'writes': list(writes)})[1]['id']

    def delete_state(self, state_id):
        """Forget a state that user_data refers to."""
        self.call('DELETE', f'v1/states/{state_id}', 204)

    def delete_desired_state(self, guest_id, kind='servers'):
        """Forget the desired state."""
        self.call('DELETE', f'v1/{kind}/{guest_id}/desired-state', 204)

    def limits(self, group):
        """List the limits that a group of guests shares."""
        return self.call('GET', f'v1/limits/{group}', 200)[1]['limits']

    def set_limits(self, group, limits, servers):
        """Let servers share limits; return as limits()."""
        return self.call('PUT', f'v1/limits/{group}', 200, {
            'limits': limits, 'servers': servers})[1]['limits']

    def delete_limits(self, group):
        """Forget limits."""
        self.call('DELETE', f'v1/limits/{group}', 204)

    def show_chain(self, chain_id):
        """Return the counters of a port chain."""
        return self.call('GET', f'v1/chains/{chain_id}', 200)[1]['chain']

    def _change(self, method, path, body):
        """Change a guest and wait for its verdict; return the revision.

        :raises BadRequest, NotFound: with the guest's own error
        """
        headers, answer = self.call(method, path, [200, 202], body)
        if headers.status == 200:
            return answer['revision']
        # A server in front may have made it absolute.
        place = 'v1/' + headers['location'].partition('/v1/')[2]
        change = waiters.until(
            lambda: self.call('GET', place, 200)[1]['change'],
            lambda seen: seen['status'] != 'pending', f'{place} has a verdict')
        code = change.get('error', {}).get('code', '')
        if code.startswith('no-such-'):
            raise exceptions.NotFound(change)
        if change['status'] != 'applied':
            raise exceptions.BadRequest(change)
        return change['revision']

    @staticmethod
    def _path(kind, guest_id, name):
        return f'v1/{kind}/{guest_id}/handlers/{parse.quote(name)}'
