# SPDX-License-Identifier: Apache-2.0
"""The console log of a server: what Nova did with it, and what its guest says.

cosmosd keeps the text of a guest for as long as the guest exists. So a file
of this host keeps each start, its outcome, each stop, and the texts of earlier
guests. It ends with the server's stay on this host.
"""

import contextlib
import hashlib
import os
import re
import threading

from clickos_client import document
from nova import exception as nova_exception
from oslo_log import log as logging
from oslo_utils import excutils
from oslo_utils import timeutils

from nova_clickos.conf import CONF
from nova_clickos import exception
from nova_clickos import guest
from nova_clickos import named_ports
from nova_clickos import userdata

LOG = logging.getLogger(__name__)

#: Bytes of a file; the oldest lines make room.
KEPT_BYTES = 64 * 1024
_FOLDER = 'clickos_console'
_SUFFIX = '.log'
#: Characters of a line: an error may quote its configuration.
_LINE = 2000
_GROUPS = 'clickos_groups'
_TIME = re.compile(rb'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?= nova: )',
                   re.MULTILINE)
#: The beginning of a guest's line that readers could take for one of Nova.
_FORGED = re.compile(rb'^(?=.{0,64}nova:)', re.MULTILINE | re.IGNORECASE)


class Console:
    """The logs of this host's servers.

    A log that cannot be written fails nothing: a full disk stops no server.
    """

    def __init__(self, guests):
        self._guests = guests
        self._lock = threading.Lock()

    def read(self, instance):
        """Return the end of a log, a stopped server's too, as bytes.

        :raises: ConsoleNotAvailable for a server that never started here;
            CosmosdUnavailable
        """
        kept = self._kept(instance)
        try:
            kept += self._said(instance)
        except nova_exception.ConsoleNotAvailable:
            if not kept:
                raise
        return _end(kept, guest.MAX_CONSOLE_BYTES)

    @contextlib.contextmanager
    def starting(self, instance, first):
        """Note a start with its outcome.

        The earlier guest runs on after some refusals; its text is not kept
        twice then.

        :param first: True if no earlier guest can be there.
        :returns: list for the lines of describe()
        """
        earlier = b'' if first else self._of_guest(instance)
        lines = []
        try:
            yield lines
        except Exception as e:
            with excutils.save_and_reraise_exception():
                lines.append('refused: %s' % exception.for_tenants(e))
                gone = earlier and not self._of_guest(instance)
                self._add(instance, lines, earlier if gone else b'')
        else:
            self._add(instance, [*lines, 'accepted: the guest runs'], earlier)

    @contextlib.contextmanager
    def ending(self, instance, why):
        """Keep what a guest says that is about to end, and say why it does.

        A crashed guest may stay; its text is not kept twice.
        """
        text = self._of_guest(instance)
        yield
        gone = text and not self._of_guest(instance)
        self._add(instance, [why], text if gone else b'', begins=bool(text))

    def note(self, instance, line, begins=False):
        """Add a line to a log.

        :param begins: whether a server without a log gets one. Neutron
            reports deleted ports also after their server has ended here.
        """
        self._add(instance, [line], begins=begins)

    def remove(self, instance):
        """Remove a log; may be called twice."""
        with self._lock:
            _remove(_path(instance.uuid))

    def keep_only(self, uuids):
        """Remove the logs of servers that left while nova-compute was down."""
        with contextlib.suppress(OSError):
            for name in os.listdir(_folder()):
                if name.removesuffix(_SUFFIX) not in uuids:
                    _remove(os.path.join(_folder(), name))

    def _of_guest(self, instance):
        """Return the text of a guest; nothing without one, or an answer."""
        try:
            return self._said(instance)
        except nova_exception.NovaException as e:
            LOG.debug('No text of a guest: %s', e, instance=instance)
            return b''

    def _said(self, instance):
        """Return what a guest says; it cannot pass for a line of Nova."""
        return _FORGED.sub(b'guest: ', self._guests.console(instance))

    def _kept(self, instance):
        try:
            with open(_path(instance.uuid), 'rb') as file:
                return file.read(KEPT_BYTES)
        except OSError:
            return b''

    def _add(self, instance, lines, before=b'', begins=True):
        if before and not before.endswith(b'\n'):
            before += b'\n'
        added = b''.join(map(_encoded, lines))
        try:
            with self._lock:
                kept = self._kept(instance)
                if not before and _is_repeated(kept, added):
                    kept = kept[:-len(added)]
                if kept or begins:
                    _write(_path(instance.uuid), kept + before + added)
        except OSError as e:
            LOG.warning('The console log lacks some lines: %s', e,
                        instance=instance)


def describe(instance, needs, network_info):
    """Return lines about what a guest starts with.

    :param needs: arguments of Guests.start()
    """
    image_sha256, _vifs, configuration, _number, _confirm, *kernel = needs
    groups = userdata.image_property(instance, _GROUPS)
    yield 'start: image %s, sha256 %.12s, memory %d MiB%s' % (
        instance.image_ref, image_sha256, instance.flavor.memory_mb,
        ', groups %.80s' % groups if groups else '')
    metadata = instance.device_metadata
    tags = {device.mac: device.tags[0]
            for device in (metadata.devices if metadata else ())}
    for number, vif in enumerate(network_info or ()):
        yield 'device %d: %s' % (number, device_text(vif, tags))
    if kernel:
        yield 'command line: %s' % kernel[0]['command_line']
        return
    text = document.without_ports(configuration.config).encode()
    yield 'configuration %s: %d bytes, sha256 %.12s, %d handler writes' % (
        configuration.config_name, len(text),
        hashlib.sha256(text).hexdigest(), len(configuration.writes))


def device_text(vif, tags=()):
    """Return an interface as text: its MAC address, its addresses, its tag."""
    parts = [vif['address'], *named_ports.addresses(vif)]
    if vif['address'] in tags:
        parts.append('tag %s' % tags[vif['address']])
    return ', '.join(parts)


def _encoded(line):
    """Return a line with the time; what a tenant chose is harmless in it."""
    line = ''.join(c if c.isprintable() or c == '\n' else '?'
                   for c in line[:_LINE]).replace('\n', '\n    ')
    return ('%s nova: %s\n' % (
        timeutils.utcnow().strftime('%Y-%m-%d %H:%M:%S'), line)).encode(
            'ascii', 'backslashreplace')


def _is_repeated(kept, added):
    """Return whether a log ends with lines that differ in their times only.

    After a boot of the host a start is repeated every 2 s until its services
    answer; without this its refusals would expel all other lines.
    """
    rest, last = kept[:-len(added)], kept[-len(added):]
    return (not rest or rest.endswith(b'\n')) and (
        _TIME.sub(b'', last) == _TIME.sub(b'', added))


def _end(content, size):
    """Return the last lines that fit; the end of a longer one has dots."""
    if len(content) <= size:
        return content
    cut = content[-size:]
    return cut.partition(b'\n')[2] or b'...' + cut[3:]


def _write(path, content):
    os.makedirs(_folder(), mode=0o700, exist_ok=True)
    new = path + '.new'
    try:
        with open(new, 'wb') as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(_end(content, KEPT_BYTES))
        os.replace(new, path)
    except OSError:
        with excutils.save_and_reraise_exception():
            _remove(new)


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as e:
        LOG.warning('A console log remains: %s', e)


def _folder():
    """Return the folder of this host: several may share instances_path."""
    return os.path.join(CONF.instances_path, _FOLDER, CONF.host)


def _path(uuid):
    return os.path.join(_folder(), uuid + _SUFFIX)
