# SPDX-License-Identifier: Apache-2.0
"""Waiting for what takes a while."""

import time

from tempest import config
from tempest.lib import exceptions

CONF = config.CONF

RUNNING = ('STARTING', 'PROCESSING', 'ROLLING_BACK')


def until(look, wanted, what, timeout_s=None):
    """Look again and again until wanted(what was seen); return that.

    :param look: called without arguments
    :param wanted: called with what look returned
    :param what: for the message when the time is over
    :param timeout_s: state_timeout if None
    """
    timeout_s = timeout_s or CONF.clickos.state_timeout
    deadline_s = time.monotonic() + timeout_s
    while True:
        seen = look()
        if wanted(seen):
            return seen
        if time.monotonic() > deadline_s:
            raise exceptions.TimeoutException(
                f'{what}: not within {timeout_s} s; last seen: {seen!r}')
        time.sleep(CONF.clickos.poll_interval)


def package(tacker, package_id):
    """Wait until a package is onboarded; return it."""
    return until(lambda: tacker.show_package(package_id),
                 lambda seen: seen['onboardingState'] == 'ONBOARDED',
                 f'package {package_id} ONBOARDED', CONF.clickos.lcm_timeout)


def operation(tacker, operation_id):
    """Wait until an operation occurrence is over; return it."""
    return until(lambda: tacker.show_operation(operation_id),
                 lambda seen: seen['operationState'] not in RUNNING,
                 f'operation {operation_id} over', CONF.clickos.lcm_timeout)


def server(servers, server_id, status='ACTIVE'):
    """Wait until a server is in a state and no task runs; return it.

    :param servers: a servers_client
    :raises: at once with the server's fault, if it is in ERROR instead
    """
    seen = until(
        lambda: servers.show_server(server_id)['server'],
        lambda seen: seen['status'] in (status, 'ERROR')
        and not seen['OS-EXT-STS:task_state'],
        f'server {server_id} {status}', CONF.clickos.lcm_timeout)
    if seen['status'] != status:
        raise exceptions.TempestException(
            f'server {server_id} is in ERROR: {seen.get("fault")}')
    return seen


def gone(show, what):
    """Wait until show raises NotFound."""
    def look():
        try:
            return show()
        except exceptions.NotFound:
            return None
    until(look, lambda seen: seen is None, f'{what} gone')
