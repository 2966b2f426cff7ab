# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.again_up``: VNFs outlive a lab's stop.

Starts a lab with firewalls, takes it down and up as ``make lab-down`` and
``make lab-up`` do. Each VNF has to do its work again. Its server is ACTIVE,
and Nova has neither stopped nor started it. The acknowledged values run.
"""

import os
import sys
import time

from clickos_client import api
from keystoneauth1 import exceptions

from clickos_lab import lab as _lab
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import firewalls
from clickos_lab.suites import on_lab

#: VNFs, and seconds until all have their values again.
COUNT = 3
_PATIENCE_S = 120
_HANDLER, _VALUE = 'fw.config', 'allow icmp, deny all'


def main():
    """Start the lab, check, stop it; return the exit status."""
    state = paths.State()
    lab = _lab.Lab(state)
    return on_lab.run(lab, lambda: check(state, lab))


def check(state, lab):
    """Take a lab down and up; return 1 if a VNF did not come back."""
    fleet = _fleet(state)
    fleet.launch(COUNT, COUNT)
    servers = [fleet.tacker.server_id(vnf) for vnf in fleet.vnfs()]
    client = api.Client(fleet.demo.session)
    for server in servers:
        client.write(server, _HANDLER, _VALUE)
    with log.step('lab-down, lab-up'):
        lab.down()
        lab.up()
    fleet = _fleet(state)
    try:
        faults = [fault for server in servers
                  for fault in _faults(fleet.demo, server)]
    finally:
        fleet.sweep()
    for fault in faults:
        print(f'  {fault}')
    log.info(f'{len(servers)} VNFs, {len(faults)} faults')
    return int(bool(faults))


def _fleet(state):
    return firewalls.Firewalls(state, _settings.Settings.load(state))


def _faults(demo, server_id):
    """Say what of a server is not as before."""
    seen = _value(api.Client(demo.session), server_id)
    if seen != _VALUE:
        yield f'{server_id}: {_HANDLER} is {seen!r}'
    server = demo.compute.get_server(server_id)
    if (server.status, server.power_state) != ('ACTIVE', 1):
        yield f'{server_id}: {server.status}, power {server.power_state}'
    actions = {each.action for each in
               demo.compute.server_actions(server_id)}
    if actions != {'create'}:
        yield f'{server_id}: actions {sorted(actions)}'


def _value(client, server_id):
    """Return a handler's value as soon as the guest answers."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return client.read(server_id, _HANDLER)
        except (api.ClickOSError, exceptions.ClientException) as e:
            if time.monotonic() > deadline_s:
                return str(e)
        time.sleep(1)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
