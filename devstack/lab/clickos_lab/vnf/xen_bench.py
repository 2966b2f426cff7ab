# SPDX-License-Identifier: Apache-2.0
"""A VNF as a guest of a Xen host, with a host on each of its vifs.

::

    host [eth0] === tap, QEMU === eth1 of dom0, valed === [0] guest

The hosts are those of :mod:`testbed`, so the scenarios run unchanged. cosmosd
makes the guest, of the first profile whose image has the VNF's elements.
"""

import hashlib
import os
import uuid

from clickos_client import checker
from clickos_lab import rust
from clickos_lab.vnf import testbed
from clickos_lab.xen import image
from cosmos_client import CosmosClient

_SWITCH = 'vale0'
_ANSWER_S, _START_MS = 60, 60000
_SLOTS = 256


class Host:
    """The Xen host of the guests.

    :param socket: that of its cosmosd, brought here
    :param taps: of its uplinks
    """

    def __init__(self, state, socket, taps):
        self.client = CosmosClient(socket, timeout_s=_ANSWER_S)
        self.taps = taps
        self._state = state
        self._images = {}

    def connect(self):
        """Lead each network of the switch to an uplink."""
        for number, _tap in enumerate(self.taps, 1):
            self.client.call('uplink-set', switch=_SWITCH, segment=number,
                             uplink={'ifname': f'eth{number}'})

    def image(self, config, name=None):
        """Hand over an image, once; return its sum.

        :param config: the first profile that has its elements is taken
        :param name: or an image of that name
        """
        name = name or self._fitting(config)
        image.build_profile(self._state, name)
        if name not in self._images:
            content = (image.folder(self._state) / name).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            self.client.image_add(digest, len(content), [content])
            self._images[name] = digest
        return self._images[name]

    def _fitting(self, config):
        """Return the first image of a profile that has all that is needed.
        """
        rust.build(self._state)
        needed = checker.groups(str(self._state.binary(rust.CHECKER)), config)
        for name in image.OF_PROFILES:
            image.build_profile(self._state, name)
            if needed.keys() <= set(
                    image.groups(self._state, name).split(',')):
                break
        return name


class XenBench(testbed.VnfTestbed):
    """A VNF under test on a :class:`Host`.

    :param image_name: by default that of the profile that it needs
    """

    def __init__(self, name, host, image_name=None):
        super().__init__(name)
        self._host = host
        self._image = image_name
        self.uuid = str(uuid.uuid4())

    def _connect(self, undo):
        for index, interface in enumerate(self.interfaces):
            tap, host = self._host.taps[index], self.namespace(interface.cp)
            testbed.ip('link', 'set', tap, 'down')
            testbed.ip('link', 'set', tap, 'netns', host, 'name', 'eth0')
            # It would end with the namespace.
            undo.callback(testbed.ip, '-n', host, 'link', 'set', 'eth0',
                          'netns', os.getpid(), 'name', tap)
            testbed.ip('-n', host, 'link', 'set', 'eth0', 'address',
                       testbed.host_mac(index))

    def _start_vnf(self, undo):
        made, client = self.configuration(), self._host.client
        self._text = made.config
        undo.callback(client.call, 'destroy', uuid=self.uuid)
        client.call('create', uuid=self.uuid, name=self.name,
                    image_sha256=self._host.image(made.config, self._image),
                    memory_mib=self.vdu.memory_mib,
                    vifs=list(map(self._vif, self.interfaces)),
                    config=made.config, config_name=self._file,
                    writes=made.writes, timeout_ms=_START_MS)
        return Handlers(client, self.uuid)

    @property
    def _file(self):
        return f'{self.name}.click'

    def _vif(self, interface):
        index = self.interfaces.index(interface)
        return {'devid': index, 'mac': interface.mac, 'switch': _SWITCH,
                'port': f'vif{index}', 'segment': index + 1, 'allowed': [],
                'port_security': False, 'mtu': interface.mtu,
                'slots': _SLOTS}

    def _install(self):
        self._host.client.call('router-install', uuid=self.uuid,
                               config=self._text, config_name=self._file,
                               timeout_ms=_START_MS)


class Handlers:
    """A guest's handlers, as :class:`control.Control` has a program's."""

    def __init__(self, client, uuid):
        self._client, self._uuid = client, uuid

    def read(self, handler):
        """Return a read handler's value; a parameter follows a blank."""
        name, _, parameter = handler.partition(' ')
        answer = self._client.call('handler-read', uuid=self._uuid, name=name,
                                   param=parameter)
        return answer['value'].strip()

    def write(self, handler, value):
        """Write a handler.

        :raises CosmosError: with the element's words if it refuses
        """
        self._client.call('handler-write', uuid=self._uuid,
                          writes=[(handler, value)], timeout_ms=_START_MS)
