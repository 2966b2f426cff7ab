# SPDX-License-Identifier: Apache-2.0
"""What has to work between two steps of an upgrade."""

import subprocess
import time

from clickos_client import api
from keystoneauth1 import exceptions as ks_exc

from clickos_lab import accounts
from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab import databases
from clickos_lab.demo import machines
from clickos_lab.demo import tacker
from clickos_lab import errors
from clickos_lab.host import guests
from clickos_lab import log
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.suites import faults
from clickos_lab.suites import firewalls
from clickos_lab.upgrade import chain
from clickos_lab.upgrade import traffic

_AGENT = 'ClickOS agent'
_HANDLER = 'fw.config'
#: All let the pings pass.
_RULES = ('allow icmp, deny all', 'allow icmp, allow tcp, deny all')
_PROPERTIES = ({'rules': ['allow icmp', 'allow udp', 'deny all']},
               {'rules': ['allow icmp', 'deny all']})
_GATEWAYS = {'left': '10.10.1.1', 'right': '10.10.2.1'}
_ASPECT = {'aspectId': 'capacity', 'numberOfSteps': 1}
_SECRET = 'of-the-upgrade'
#: Seconds until a chain forwards by its hop again.
_CHAIN_S = 20
#: Seconds for a guest that starts again.
_PATIENCE_S = 120
#: Exit status of clickos-status by result.
STATUS = {0: 'success', 1: 'warning', 2: 'failure'}


class Probe:
    """A firewall and a chain with pings through them, and checks.

    :param lab: a :class:`place.Lab` that is up
    :ivar faults: texts of what was not as it should be
    """

    def __init__(self, lab):
        self._lab, state = lab, lab.state
        self._settings = _settings.Settings.load(state)
        self._fleet = firewalls.Firewalls(state, self._settings,
                                          lab.older.templates)
        self._demo = self._fleet.demo
        self._clickos = api.Client(self._demo.session)
        self._admin = sessions.admin(self._settings)
        self._machines = machines.Machines(state, self._admin, self._demo)
        self._hop = chain.Hop(self._demo)
        self._streams, self._steps = {}, 0
        self.faults = []

    def start(self):
        """Launch the firewall and the chain, and let pings run."""
        self.remove()       # what an interrupted run has left
        self._fleet.onboard()
        make = self._machines.make_endpoint
        near, client = make('left', 'client', _GATEWAYS['left'])
        far, _ = make('right', 'server', _GATEWAYS['right'])
        peer, _ = make('left', 'peer', _GATEWAYS['left'])
        self.vnf = self._fleet.create('through')
        self._fleet.instantiate(self.vnf, _GATEWAYS)
        self.server = self._fleet.tacker.server_id(self.vnf)
        self._clickos.write(self.server, _HANDLER, _RULES[0])
        self._clickos.create_secret(_SECRET, 'a value')
        self._hop.make(near, peer)
        for name, address in (('firewall', far.ip), ('chain', peer.ip)):
            self._streams[name] = traffic.Stream(
                client, address, self._lab.state.log / f'ping-{name}.log')
        self.settle()

    def settle(self):
        """Wait until all pings are answered, and count from here."""
        for stream in self._streams.values():
            stream.settle()

    def step(self, text, change, silent_s=0.0):
        """Make a change, and check the cloud after it.

        :param silent_s: the longest silence that the change may cause
        """
        with log.step(text):
            if not self.checked(text, change):
                raise errors.LabError(f'{text}: failed')
            for name, stream in self._streams.items():
                self._judge(f'{text}: {name}', stream, silent_s)
            for check in (self._pass_through_hop, self._handlers,
                          self._update, self._launch):
                self.checked(text, check)
        self._steps += 1

    def _judge(self, text, stream, silent_s):
        try:
            lost, silence_s = stream.lost()
        except errors.LabError as e:
            self.fault(f'{text}: {e}')
            return
        log.info(f'  pings {text}: {lost} lost, silent {silence_s:.1f} s')
        if silence_s > silent_s:
            self.fault(f'{text}: {lost} pings lost, silent for '
                       f'{silence_s:.1f} s, expected {silent_s} s')

    def fault(self, text):
        """Note what is not as it should be."""
        log.warn(f'  FAULT {text}')
        self.faults.append(text)

    def checked(self, text, check):
        """Call a check; note its exception, and return if it had none."""
        try:
            check()
        except Exception as e:
            name = getattr(check, '__name__', 'change').strip('_')
            self.fault(f'{text}: {name}: {type(e).__name__}: {e}')
            return False
        return True

    def _pass_through_hop(self):
        """Wait until packets pass the hop, and say how long that took.

        A switch that starts has no chains before clickos-agent sets them.
        """
        before, began_s = self._count(), time.monotonic()
        while self._count() <= before + 1:
            if time.monotonic() > began_s + _CHAIN_S:
                raise errors.LabError('no packet passes the hop of the chain'
                                      f' within {_CHAIN_S} s')
            time.sleep(traffic.INTERVAL_S)
        log.info(f'  the hop has packets after '
                 f'{time.monotonic() - began_s:.1f} s')
        hops = self._clickos.chain(self._hop.chain_id)['hops']
        if len(hops) != 1:
            raise errors.LabError(f'chain: {hops}, expected one hop')

    def _count(self):
        return int(self._clickos.read(self._hop.server_id, chain.COUNTER))

    def _handlers(self):
        """Write a handler of the guest, and read it back."""
        value = _RULES[self._steps % len(_RULES)]
        self._clickos.write(self.server, _HANDLER, value)
        self._expect_value(value)

    def _expect_value(self, value):
        seen = self._clickos.read(self.server, _HANDLER)
        if seen != value:
            raise errors.LabError(f'{_HANDLER} is {seen!r}, not {value!r}')

    def _update(self):
        """Change a property of the VNF by Tacker."""
        wanted = _PROPERTIES[self._steps % len(_PROPERTIES)]
        ask, path = self._fleet.tacker.ask, f'{tacker.INSTANCES}/{self.vnf}'
        ask('PATCH', path, json={'metadata': {'clickos_properties': wanted}})
        self._fleet.tacker.wait_verdict(self.vnf, wanted)
        self._expect_value(', '.join(wanted['rules']))

    def _launch(self, live=lambda vnf: None):
        """Launch another VNF, let it live, and remove it."""
        vnf = self._fleet.create(f'at-step-{self._steps}')
        try:
            self._fleet.instantiate(vnf)
            live(vnf)
            self._fleet.operate(vnf, 'terminate',
                                {'terminationType': 'FORCEFUL'})
        finally:
            self._fleet.tacker.remove_vnf(vnf)

    def finish(self):
        """Scale and heal VNFs, and remove everything."""
        with log.step('scale, heal, delete'):
            for check in (self._scale, self._heal, self.settle, self.stop,
                          self.remove, self._nothing_left):
                self.checked('at the end', check)

    def _scale(self):
        def live(vnf):
            for kind in ('SCALE_OUT', 'SCALE_IN'):
                self._fleet.operate(vnf, 'scale', {'type': kind, **_ASPECT})
        self._launch(live)

    def _heal(self):
        """Heal the firewall: it has its values."""
        self._clickos.write(self.server, _HANDLER, _RULES[0])
        found = self._fleet.tacker.show(self.vnf)['instantiatedVnfInfo']
        self._fleet.operate(self.vnf, 'heal', {
            'cause': 'upgrade', 'vnfcInstanceId': [
                each['id'] for each in found['vnfcResourceInfo']]})
        self.server = self._fleet.tacker.server_id(self.vnf)
        self._expect_value(_RULES[0])

    def renew_guests(self):
        """Let the guests run the new engine, which starts no other image."""
        self._heal()
        self._hop.rebuild()

    def stop(self):
        """End the pings; may be called twice."""
        for stream in self._streams.values():
            stream.stop()
        self._streams = {}

    def remove(self):
        """Remove everything, in whatever state it is."""
        self._hop.remove()
        self._fleet.sweep()
        self._machines.remove()
        for secret in self._clickos.list_secrets():
            self._clickos.delete_secret(secret['id'])

    def _nothing_left(self):
        left = {name: databases.rows(self._lab.state, query)
                for name, query in faults.REMAINS.items()}
        left['guests'] = list(guests.Guests(self._lab.state).listed())
        left['servers'] = list(self._demo.compute.servers())
        left['ports'] = list(self._demo.network.ports())
        left = {name: each for name, each in left.items() if each}
        if left:
            raise errors.LabError(f'left: {left}'[:2000])

    def kept(self):
        """Return what a restored database has to have again."""
        return {'secrets': [each['name'] for each
                            in self._clickos.list_secrets()],
                'chain': len(self._clickos.chain(
                    self._hop.chain_id)['hops']),
                'vnf': self._fleet.tacker.show(self.vnf)[
                    'instantiationState'],
                'value': self._clickos.read(self.server, _HANDLER)}

    def await_kept(self, wanted):
        """Wait until all is as kept() returned it.

        :raises LabError: if it is not
        """
        end_s, seen = time.monotonic() + _PATIENCE_S, None
        while seen != wanted:
            if time.monotonic() > end_s:
                raise errors.LabError(f'{seen}, expected {wanted}')
            try:
                seen = self.kept()
            except (api.ClickOSError, ks_exc.ClientException,
                    errors.LabError) as e:
                seen = str(e)
            time.sleep(1)

    def expect_agent(self, version):
        """Wait until the host's agent reports a release."""
        def reported():
            return [agent.configuration.get('release') for agent
                    in self._admin.network.agents(
                        host=hosts.PROCESS.name, agent_type=_AGENT)]
        self.checked(f'agent of {version}', lambda: compute.wait(
            lambda: reported() == [version], _PATIENCE_S,
            f'the agent reports {version}'))

    def expect_status(self, text, wanted, needle=''):
        """Check the verdict of ``clickos-status upgrade check``.

        :param wanted: a value of :data:`STATUS`
        :param needle: what its table has to say
        """
        status, table = self._status()
        seen = STATUS.get(status, status)
        log.info(f'  clickos-status: {seen}')
        if seen != wanted or needle not in table:
            self.fault(f'{text}: clickos-status: {seen}, expected {wanted} '
                       f'{needle}:\n{table}')

    def _status(self):
        """Run clickos-status of this release; return status and table."""
        state = self._lab.state
        home = str(accounts.home(state, 'clickos'))
        done = subprocess.run(
            [*map(str, accounts.prefix(state, self._settings, 'clickos')),
             str(state.tool('clickos-status')), '--config-file',
             str(state.etc / 'clickos/clickos-api.conf'), 'upgrade', 'check'],
            capture_output=True, text=True, cwd='/', timeout=120,
            env=shell.environment(state, HOME=home, TMPDIR=home))
        return done.returncode, done.stdout + done.stderr
