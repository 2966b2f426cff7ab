# SPDX-License-Identifier: Apache-2.0
"""An in-memory cosmosd that speaks the true protocol on a UNIX socket.

It holds requests against the contract; no guest runs. Tests give it faults,
kill its guests, and stop and start it.
"""

import base64
import contextlib
import functools
import hashlib
import json
import os
import socket
import threading

from clickos_client import contract
import fastjsonschema
import fixtures

SHA256 = 'ab' * 32
#: A port's counters, each with a value of its own: 1, 2, 4 and so on.
COUNTERS = {name: 1 << n for n, name in enumerate((
    'rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes', 'dropped_full',
    'dropped_spoof', 'dropped_type', 'dropped_rogue', 'dropped_hidden',
    'dropped_link_control', 'dropped_malformed', 'dropped_too_long',
    'dropped_link_down', 'dropped_unknown', 'dropped_rate', 'dropped_flood',
    'dropped_filter', 'dropped_offload', 'dropped_loop', 'kicks'))}

#: Of every guest.
INCARNATION = '77777777-2222-4333-8444-555555555555'


def taken(number):
    """Return the answer to a numbered change."""
    return {'applied': [number], 'incarnation': INCARNATION}


@functools.cache
def _checked(verb):
    """Return what checks the arguments of a verb."""
    return fastjsonschema.compile(contract.schema('cosmosd', verb, 'args'),
                                  use_default=False)


class Refusal(Exception):
    """An error answer: code and message."""


class FakeCosmosd(fixtures.Fixture):
    """Serves on `path` from setUp on.

    :ivar requests: list of (verb, args), in order of arrival.
    :ivar guests: dict of guest by UUID.
    :ivar images: bytes by SHA-256, as image-add brought them.
    :ivar uplinks: by switch and segment.
    :ivar devices: interface by switch and port.
    :ivar chains: what chain-list answers.
    :ivar faults: dict of (code, message) by verb; None hangs up after the
        verb was carried out, so that its answer is lost.
    """

    def __init__(self, host_kind='process'):
        self.host_kind = host_kind
        self.host_faults = []
        #: Domains that somebody else made.
        self.strangers = []
        #: How many looks find filtered ports closed.
        self.closed_looks = 0
        self.requests = []
        self.guests = {}
        self.images = {}
        self.chains = []
        self.uplinks = {}
        self.devices = {}
        self.faults = {}
        self.handlers = ['c.count']
        self._caller = None
        self.engine_sha256 = SHA256
        self._listener = None
        self._open = []
        self._followers = []
        self._lock = threading.Lock()

    def _setUp(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = os.path.join(folder, 'cosmosd.sock')
        self.addCleanup(self.stop)
        self.start()

    def start(self):
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._accept,
                                        args=(self._listener,))
        self._thread.start()

    def stop(self):
        """Go away as a daemon does that was killed; may be called twice."""
        if self._listener is None:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._listener = None
        os.unlink(self.path)
        with self._lock:
            talks, self._open, self._followers = self._open, [], []
        for connection, thread in talks:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()

    def verbs(self):
        return [verb for verb, _ in self.requests]

    def args(self, verb):
        """The arguments of the last request with this verb."""
        return [args for name, args in self.requests if name == verb][-1]

    def crash(self, uuid, reason, tell=True):
        """Let a guest die."""
        self.guests[uuid].update(state='crashed', reason=reason)
        if tell:
            self.send('died', uuid=uuid, domid=1, reason=reason)

    def send(self, event, **data):
        line = json.dumps({'v': 1, 'event': event, 'data': data}) + '\n'
        with self._lock:
            for connection in self._followers:
                connection.sendall(line.encode())

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=self._talk,
                                          args=(connection,))
                with self._lock:
                    self._open.append((connection, thread))
                thread.start()

    def _talk(self, connection):
        try:
            self._serve(connection)
        finally:
            self._forget(connection)

    def _forget(self, connection):
        """Undo the moves of a client that has gone."""
        for uuid, guest in list(self.guests.items()):
            if guest.get('arriving_by') is connection:
                self.guests.pop(uuid)
            if guest.get('moved_by') is connection and \
                    not guest.get('committed'):
                guest.update(moved_by=None, halted=False)

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection, \
                connection.makefile('rb') as lines:
            for line in lines:
                request = json.loads(line)
                self._caller = connection
                answer = self._answer(request['verb'], request['args'])
                if answer is None:
                    return
                answer.update(v=1, id=request['id'])
                with self._lock:  # an event comes after the answer
                    connection.sendall(json.dumps(answer).encode() + b'\n')
                    if request['verb'] == 'events':
                        self._followers.append(connection)

    def _answer(self, verb, args):
        self.requests.append((verb, args))
        fault = self.faults.get(verb, ())
        try:
            if fault:
                raise Refusal(*fault)
            _checked(verb)(args)
            do = getattr(self, '_do_' + verb.replace('-', '_'), dict)
            answer = do(**args) if do is not dict else {}
        except fastjsonschema.JsonSchemaValueException as e:
            return {'error': {'code': 'bad-request', 'message': e.message}}
        except Refusal as e:
            return {'error': {'code': e.args[0], 'message': e.args[1]}}
        return None if fault is None else {'ok': answer}

    def _guest(self, uuid):
        if uuid not in self.guests:
            raise Refusal('no-such-guest', 'no guest %s' % uuid)
        return self.guests[uuid]

    def _do_chain_list(self):
        return {'chains': self.chains}

    def _do_hello(self):
        return {'version': '0.1.0', 'host_kind': self.host_kind,
                'roles': ['nova']}

    def _do_host(self):
        return {'host_kind': self.host_kind, 'memory_mib': 2048,
                'memory_used_mib': 64, 'cpus': 2, 'guests': len(self.guests),
                'max_vcpus': 8 if self.host_kind == 'process' else 1,
                'vcpus_used': sum(guest.get('vcpus', 1)
                                  for guest in self.guests.values()),
                'pooled': 0, 'max_guests': 256, 'uptime_s': 77,
                'version': '0.1.0',
                'engine_sha256': self.engine_sha256,
                'faults': self.host_faults}

    def _do_image_list(self):
        return {'images': [{'sha256': sha256, 'size': len(content),
                            'used_s': 0}
                           for sha256, content in self.images.items()]}

    def _do_image_add(self, sha256, size, offset, data):
        if self.host_kind != 'xen':
            raise Refusal('unsupported', 'image-add: only on a Xen host')
        content = self.images.get(sha256, b'')[:offset]
        content += base64.b64decode(data)
        self.images[sha256] = content
        if len(content) == size and \
                hashlib.sha256(content).hexdigest() != sha256:
            del self.images[sha256]
            raise Refusal('bad-image', 'image %s: wrong sum' % sha256)
        return {'complete': len(content) == size}

    def _do_create(self, uuid, name, memory_mib, vifs, config_name,
                   vcpus=1, hold=False, replace=False, **_args):
        if any(each['uuid'] == uuid for each in self.strangers):
            raise Refusal('exists', 'end it: xl destroy 77')
        if uuid in self.guests and not replace:
            raise Refusal('exists', 'guest %s exists' % uuid)
        self.guests[uuid] = {
            'uuid': uuid, 'name': name, 'domid': 1, 'state': 'running',
            'reason': '', 'memory_mib': memory_mib, 'vcpus': vcpus,
            'created_s': 0, 'cpu_time_ns': 0, 'vifs': vifs,
            'config_name': config_name, 'held': hold}
        return {'domid': 1, 'incarnation': INCARNATION}

    def _do_release(self, uuid):
        self._guest(uuid)['held'] = False
        return {}

    def _do_destroy(self, uuid):
        self.guests.pop(uuid, None)
        return {}

    def _do_router_list(self, uuid):
        self._guest(uuid)
        return {'routers': [{'rid': 0, 'state': 'Running',
                             'config_name': 'x.click'}]}

    def _do_migrate_begin(self, uuid, timeout_ms):
        self._guest(uuid).update(moved_by=self._caller, halted=True)
        return {'routers': [{'rid': 0, 'state': 'Running',
                             'config_name': 'x.click'}],
                'changes': {'incarnation': INCARNATION, 'newest': 7,
                            'applied': [6, 7]}}

    def _do_migrate_commit(self, uuid):
        self._guest(uuid)['committed'] = True
        return {}

    def _do_migrate_cancel(self, uuid, timeout_ms):
        self._guest(uuid).update(moved_by=None, halted=False,
                                 committed=False)
        return {}

    def _do_migrate_receive(self, **args):
        answer = self._do_create(**args)
        self.guests[args['uuid']].update(
            state='arriving', arriving_by=self._caller, halted=True)
        return answer

    def _do_migrate_finish(self, uuid, routers, changes, timeout_ms):
        self._guest(uuid).update(state='running', arriving_by=None,
                                 halted=routers != [0], changes=changes)
        return {}

    def _do_list(self):
        return {'guests': list(self.guests.values())}

    def _do_info(self, uuid):
        return self._guest(uuid)

    def _do_pause(self, uuid):
        self._guest(uuid)['state'] = 'paused'
        return {}

    def _do_unpause(self, uuid):
        self._guest(uuid)['state'] = 'running'
        return {}

    def _do_save(self, uuid):
        if self.host_kind != 'xen':
            raise Refusal('unsupported', 'save: not on this kind of host')
        self._guest(uuid)['state'] = 'saved'
        return {'bytes': 8 << 20}

    def _do_restore(self, uuid):
        guest = self._guest(uuid)
        if guest['state'] != 'saved':
            raise Refusal('exists', 'guest %s is not saved' % uuid)
        guest['state'] = 'running'
        return {'steps_ms': []}

    def _do_console(self, uuid, max_bytes):
        self._guest(uuid)
        return {'text': 'engine ready\n\u20ac'[-max_bytes:]}

    def _vif(self, uuid, devid):
        return next(vif for vif in self._guest(uuid)['vifs']
                    if vif['devid'] == devid)

    def _do_vif_remove(self, uuid, devid, domid):
        self._vif(uuid, devid)['link'] = 'removed'
        return {}

    def _do_vif_plug(self, uuid, vif):
        if vif['devid'] in [each['devid'] for each in self._guest(uuid)[
                'vifs']]:
            raise Refusal('exists', 'vif: devid %d' % vif['devid'])
        self._guest(uuid)['vifs'].append(vif)
        return {}

    def _do_vif_unplug(self, uuid, devid):
        self._guest(uuid)['vifs'].remove(self._vif(uuid, devid))
        return {}

    def _do_vif_list(self, uuid):
        vifs = self._guest(uuid).get('vifs', [])
        self.closed_looks -= 1
        return {'ports': [{'devid': vif['devid'], 'mac': vif['mac'],
                           'port_id': vif.get('port_id'), 'link_up': True,
                           'closed': bool(vif.get('filtered'))
                           and self.closed_looks >= 0,
                           'counters': COUNTERS} for vif in vifs]}

    def _do_uplink_list(self):
        return {'uplinks': [{'switch': switch, 'segment': segment,
                             'uplink': uplink}
                            for (switch, segment), uplink
                            in self.uplinks.items()]}

    def _do_uplink_set(self, switch, segment, uplink):
        self.uplinks[switch, segment] = uplink
        return {}

    def _do_uplink_remove(self, switch, segment):
        self.uplinks.pop((switch, segment), None)
        return {}

    def _do_device_list(self):
        return {'devices': [{'switch': switch, 'port': port}
                            for switch, port in self.devices]}

    def _do_device_set(self, switch, port, segment, mac, ifname):
        self.devices[switch, port] = ifname
        return {}

    def _do_device_remove(self, switch, port):
        self.devices.pop((switch, port), None)
        return {}

    def _do_vif_set(self, uuid, devid, link_up, domid):
        self._vif(uuid, devid)['link'] = 'up' if link_up else 'down'
        return {}

    def _do_handler_list(self, uuid, **_args):
        self._guest(uuid)
        return {'handlers': [
            {'name': name, 'read': True, 'write': name != 'c.count'}
            for name in self.handlers]}

    def _do_handler_read(self, uuid, name, param='', **_args):
        values = self._guest(uuid).get('values', {})
        return {'value': values.get(name, name + '=' + (param or '1'))}

    def _do_handlers_read(self, uuid, names, params=(), **_args):
        params = params or [''] * len(names)
        return {'values': [
            {'error': {'code': 'no-such-handler', 'message': name}}
            if name.startswith('none.')
            else self._do_handler_read(uuid, name, param)
            for name, param in zip(names, params)]}

    def _do_handler_write(self, uuid, writes, change_id=None, **_args):
        self._guest(uuid).setdefault('values', {}).update(writes)
        return taken(change_id['number']) if change_id else {}

    def _do_router_install(self, uuid, config, change_id=None, **_args):
        self._guest(uuid)['config'] = config
        return {'generation': 2,
                **(taken(change_id['number']) if change_id else {})}

    def _do_change_fence(self, uuid, number):
        self._guest(uuid)
        return {'incarnation': INCARNATION, 'newest': number, 'applied': [],
                'refused': [], 'pending': []}
