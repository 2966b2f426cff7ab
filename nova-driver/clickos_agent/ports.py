# SPDX-License-Identifier: Apache-2.0
"""Keeps the switch ports of guests as Neutron has them (docs/adr/0021)."""

import collections
import contextlib
import threading
import time

from clickos_client import neutron_rpc
from cosmos_client import CosmosError
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import uuidutils

LOG = logging.getLogger(__name__)

#: cosmosd's word for the link of a vif without a switch port.
REMOVED = 'removed'
#: Characters of a reason for tenants.
_MAX_REASON = 400
_STATES = (neutron_rpc.UP, neutron_rpc.DOWN, neutron_rpc.ABSENT)

#: Keys of a network in Neutron's answer.
_NETWORK = {'switch', 'segment', 'network_type', 'physical_network',
            'segmentation_id', 'peers'}

#: Keys of a device in Neutron's answer.
_DEVICE = {'port', 'switch', 'segment', 'mac'}

#: A vif as it was when cosmosd listed it; domid tells a guest's starts apart.
Vif = collections.namedtuple('Vif', 'uuid domid devid port_id link')
#: A vif that is not as Neutron wants it, and the state that it wants.
Change = collections.namedtuple('Change', 'vif state')
#: What a definition of a chain may have: the networks from which its hops may
#: send, and the (switch, segment) in which it may be. None stands for any, of
#: a Neutron that says nothing about it.
Rights = collections.namedtuple('Rights', 'networks places')


class NeutronUnavailable(Exception):
    """Neutron does not answer; nothing is known of any port."""


@contextlib.contextmanager
def _answer_to(method):
    """Raise NeutronUnavailable if it does not answer, or with nonsense."""
    try:
        yield
    except (oslo_messaging.MessagingException,
            oslo_messaging.RemoteError) as e:
        raise NeutronUnavailable(str(e))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise NeutronUnavailable(f'bad answer to {method}')


class Neutron:
    """The states of ports, asked of Neutron's RPC workers."""

    def __init__(self, transport, host, timeout_s):
        target = oslo_messaging.Target(
            exchange=neutron_rpc.EXCHANGE, topic=neutron_rpc.PLUGIN,
            version=neutron_rpc.FIRST_VERSION)
        self._client = oslo_messaging.get_rpc_client(
            transport, target, timeout=timeout_s, retry=neutron_rpc.RETRIES)
        self._host = host

    def states(self, vifs):
        """Ask for the states of vifs.

        :returns: state by vif; a vif without a clear answer is missing
        :raises: NeutronUnavailable
        """
        found = {}
        for first in range(0, len(vifs), neutron_rpc.MAX_PORTS):
            found.update(self._ask(vifs[first:first + neutron_rpc.MAX_PORTS]))
        return found

    def chains(self):
        """Ask for the chains of this host, as arguments of chain-set.

        :returns: the chains; and {name: Rights} of those that stay as they
            are, as long as they have no more than these; and {name: text for
            tenants} of those that are not ready
        :raises: NeutronUnavailable
        """
        with _answer_to('get_chains'):
            answer = self._client.call({}, 'get_chains', host=self._host)
            if not all(isinstance(chain['hops'], list) and chain['chain']
                       for chain in answer['chains']):
                raise TypeError
            rights, places = (answer.get(name, {}) for name in (
                'rights', 'places'))
            reasons = {name: text[:_MAX_REASON] for name, text
                       in answer.get('reasons', {}).items()}
            return answer['chains'], {
                name: Rights(rights.get(name), _places(places.get(name)))
                for name in answer['kept']}, reasons

    def networks(self):
        """Ask for the networks that have ports on this host.

        :returns: list of dicts as of neutron_clickos.uplinks.of_host
        :raises: NeutronUnavailable
        """
        with _answer_to('get_networks'):
            answer = self._client.call({}, 'get_networks', host=self._host)
            networks = answer['networks']
            if not all(_NETWORK <= network.keys() for network in networks):
                raise TypeError
            return networks

    def devices(self):
        """Ask for the devices of Neutron's agents on this host.

        :returns: list of dicts as of neutron_clickos.uplinks.devices_of
        :raises: NeutronUnavailable
        """
        with _answer_to('get_devices'):
            answer = self._client.call({}, 'get_devices', host=self._host)
            devices = answer['devices']
            if not all(_DEVICE <= device.keys() for device in devices):
                raise TypeError
            return devices

    def active_ports(self):
        """Ask which ports of this host Neutron calls active.

        :returns: set of ids
        :raises: NeutronUnavailable
        """
        with _answer_to('get_active_ports'):
            return set(self._client.call({}, 'get_active_ports',
                                         host=self._host)['ports'])

    def report_ports(self, up, down):
        """Tell which ports forward from now on, and which no more.

        :param up: list of ids
        :param down: list of ids
        :raises: NeutronUnavailable
        """
        for first in range(0, max(len(up), len(down)), neutron_rpc.MAX_PORTS):
            chunk = slice(first, first + neutron_rpc.MAX_PORTS)
            self._report('report_ports', up=up[chunk], down=down[chunk])

    def policies(self, ports):
        """Ask for the rules, limits and allowed addresses of ports.

        :param ports: each has a port_id and the uuid of its guest.
        :returns: (rules, limits, guard) by port; one without a clear answer
            is missing. And the reason by the id of a port whose rules have
            no room in the switch
        :raises: NeutronUnavailable
        """
        found, refused = {}, {}
        for first in range(0, len(ports), neutron_rpc.MAX_PORTS):
            last = first + neutron_rpc.MAX_PORTS
            some = self._ask_policies(ports[first:last])
            found.update(some[0])
            refused.update(some[1])
        return found, refused

    def _ask_policies(self, ports):
        pairs = [[port.port_id, port.uuid] for port in ports]
        with _answer_to('get_port_policies'):
            answer = self._call_policies(pairs)
            kinds = [answer[name] for name in ('rules', 'limits', 'guards')]
            return {port: tuple(kind[port.port_id] for kind in kinds)
                    for port in ports
                    if all(port.port_id in kind for kind in kinds)}, \
                dict(answer.get('refused', {}))

    def _call_policies(self, pairs):
        """Ask in this release's format, else in that of the one before."""
        try:
            return self._client.prepare(version=neutron_rpc.VERSION).call(
                {}, 'get_port_policies', host=self._host, ports=pairs,
                policy_format=neutron_rpc.POLICY_FORMAT)
        except oslo_messaging.UnsupportedVersion:
            pass
        except oslo_messaging.RemoteError as e:
            if e.exc_type != 'UnsupportedVersion':
                raise
        return self._client.call({}, 'get_port_policies', host=self._host,
                                 ports=pairs)

    def report_state(self, is_start, links, load):
        """Report that the agent of this host is alive.

        :param is_start: the agent has just started.
        :param links: dict tunnel_ip, interfaces: how the host reaches others
        :param load: as of load.Load.measure
        :raises: NeutronUnavailable
        """
        self._report('report_state', start=is_start, links=links, load=load)

    def _report(self, method, **arguments):
        with _answer_to(method):
            answer = self._client.call({}, method, host=self._host,
                                       **arguments)
        if not isinstance(answer, dict) or 'error' in answer:
            raise NeutronUnavailable('bad answer: %.200r' % (answer,))

    def _ask(self, vifs):
        with _answer_to('get_port_states'):
            answer = self._client.call(
                {}, 'get_port_states', host=self._host,
                ports=[[vif.port_id, vif.uuid] for vif in vifs])
            states = answer['states']
            return {vif: states[vif.port_id] for vif in vifs
                    if states.get(vif.port_id) in _STATES}


def _places(found):
    return None if found is None else {
        (switch, segment) for switch, segment in found}


class Hints:
    """RPC endpoint: Neutron says which ports have changed.

    A hint changes nothing by itself: the agent asks for the ports' states.
    """

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self, reconciler, chains, filters, uplinks, devices):
        self._reconciler = reconciler
        self._uplinks = uplinks
        self._devices = devices
        self._chains = chains
        self._filters = filters

    def chains_changed(self, context):
        """Compare the chains now."""
        self._chains.trigger()

    def networks_changed(self, context):
        """Compare the uplinks and devices now."""
        self._uplinks.trigger()
        self._devices.trigger()

    def policies_changed(self, context):
        """Compare the filters now."""
        self._filters.trigger()

    def ports_changed(self, context, port_ids=None):
        """Compare these ports now."""
        if not isinstance(port_ids, list) \
                or len(port_ids) > neutron_rpc.MAX_PORTS \
                or not all(map(uuidutils.is_uuid_like, port_ids)):
            LOG.warning('ports_changed: expected at most %d port ids',
                        neutron_rpc.MAX_PORTS)
            return
        self._reconciler.look_at(port_ids)


class Reconciler:
    """Compares cosmosd's vifs with Neutron's ports, in one thread.

    It changes a hinted port at once. It changes any other port after two
    looks in a row found it wrong. The second look protects a new port: a
    replica of Neutron's database may lag behind its binding.
    """

    def __init__(self, client, neutron, interval_s, hint):
        """Compare cosmosd's vifs with Neutron's ports.

        :param client: CosmosClient
        :param neutron: Neutron
        :param interval_s: seconds between two looks at all ports.
        :param hint: called after ports were changed.
        """
        self._client = client
        self._neutron = neutron
        self._interval_s = interval_s
        self._hint = hint
        self._hinted = set()
        self._suspects = set()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='ports')

    def start(self):
        """Look at all ports now and again."""
        self._thread.start()

    def stop(self):
        """End after the look that is under way."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def wait(self):
        """Wait for the end after stop()."""
        self._thread.join()

    def look_at(self, port_ids):
        """Look at these ports as soon as possible; does not wait."""
        with self._changed:
            self._hinted.update(port_ids)
            self._changed.notify()

    def _run(self):
        next_look_s = time.monotonic()
        while not self._stopping:
            if time.monotonic() >= next_look_s:
                next_look_s = time.monotonic() + self._interval_s
                self._try(self.look_at_all)
            with self._changed:
                self._changed.wait_for(
                    lambda: self._hinted or self._stopping,
                    max(0, next_look_s - time.monotonic()))
                hinted, self._hinted = self._hinted, set()
            if hinted:
                self._try(self.look_at_hinted, hinted)

    @staticmethod
    def _try(look, *args):
        try:
            look(*args)
        except (CosmosError, NeutronUnavailable) as e:
            LOG.warning('The ports are left as they are: %s', e)
        except Exception:
            LOG.exception('The ports are left as they are')

    def look_at_all(self):
        """Change the ports that were wrong in the look before, too."""
        suspects, self._suspects = self._suspects, set()
        wrong = self._wrong(self._vifs())
        self._suspects = wrong - suspects
        self._change(wrong & suspects)

    def look_at_hinted(self, port_ids):
        """Change those of these ports that are wrong."""
        self._change(self._wrong(
            [vif for vif in self._vifs() if vif.port_id in port_ids]))

    def _vifs(self):
        """:returns: those that have a switch port made for Neutron"""
        return [Vif(guest['uuid'], guest['domid'], vif['devid'],
                    vif['port_id'], vif['link'])
                for guest in self._client.call('list')['guests']
                for vif in guest['vifs']
                if vif.get('port_id') and vif['link'] != REMOVED]

    def _wrong(self, vifs):
        """Ask Neutron after cosmosd: what cosmosd has was bound before."""
        states = self._neutron.states(vifs)
        return {Change(vif, state) for vif, state in states.items()
                if vif.link != state}

    def _change(self, changes):
        for change in changes:
            try:
                self._apply(*change)
            except CosmosError as e:
                LOG.warning('Port %(port)s of guest %(guest)s: %(why)s',
                            {'port': change.vif.port_id,
                             'guest': change.vif.uuid, 'why': e})
        if changes:
            self._hint()

    def _apply(self, vif, state):
        if state == neutron_rpc.ABSENT:
            self._client.call('vif-remove', uuid=vif.uuid, devid=vif.devid,
                              domid=vif.domid)
        else:
            self._client.call('vif-set', uuid=vif.uuid, devid=vif.devid,
                              link_up=state == neutron_rpc.UP, domid=vif.domid)
        LOG.info('Port %(port)s of guest %(guest)s is %(state)s now',
                 {'port': vif.port_id, 'guest': vif.uuid, 'state': state})
