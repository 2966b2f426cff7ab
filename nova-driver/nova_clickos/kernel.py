# SPDX-License-Identifier: Apache-2.0
"""Servers whose image is a kernel that is not Click's, such as Linux.

Glance and Nova have formats and properties for them: a kernel is of
disk_format ``aki``, its initial RAM disk of ``ari``. A guest has no disk, so
the image of a server is its kernel: the property ``ramdisk_id`` names the RAM
disk, ``os_command_line`` is the command line. Nova looks for the RAM disk as
the tenant, and keeps its id in the instance.
"""

import re

from clickos_client import document

from nova_clickos import exception
from nova_clickos import host
from nova_clickos import named_ports
from nova_clickos import userdata

FORMAT, RAMDISK_FORMAT = 'aki', 'ari'
#: The RAM disk a server was created with, kept for its next start.
_RAMDISK_KEY = 'clickos_ramdisk_sha256'
_LINE = 'os_command_line'
#: So that Nova's console log has what the kernel says.
_DEFAULT_LINE = 'console=hvc0'
#: Linux reads a line of printable characters.
_PRINTABLE = re.compile('[ -~]*')
#: cosmosd shows it where other guests have the name of a configuration.
_NO_CONFIGURATION = document.Configuration(config='', config_name='kernel')


def is_kernel(instance):
    """Tell whether a server's image is a kernel that is not Click's."""
    return userdata.image_property(instance, 'disk_format') == FORMAT


def check(instance, info):
    """Refuse what no server of a kernel can have.

    :param info: what cosmosd says of the host.
    :raises: GuestNotStarted naming the property, its value and the cure
    """
    if instance.kernel_id:
        raise _bad('kernel_id %s: the image of a server is its kernel; make '
                   'the server of the kernel (disk_format %s), whose '
                   'property ramdisk_id names the RAM disk'
                   % (instance.kernel_id, FORMAT))
    if not is_kernel(instance):
        return
    if info['host_kind'] == host.PROCESS:
        raise _bad('disk_format %s: a kernel needs a Xen host, and this host '
                   'runs guests as processes; set the property '
                   'trait:CUSTOM_CLICKOS_XEN=required' % FORMAT)
    if userdata.image_property(instance, userdata.IMAGE_PROPERTY):
        raise _bad('%s: a kernel of disk_format %s takes no configuration'
                   % (userdata.IMAGE_PROPERTY, FORMAT))
    if _has_state(instance):
        raise exception.GuestNotStarted(
            reason='user_data: has a state of clickos-api, but a kernel of '
                   'disk_format %s takes no configuration; use an image of '
                   'ClickOS' % FORMAT)


def _has_state(instance):
    try:
        return bool(document.reference(instance.user_data))
    except document.DocumentError:      # the guest reads it, not ClickOS
        return False


def check_resize(instance, flavor):
    """Refuse less memory before the guest ends: its files may not fit.

    :raises: GuestNotStarted
    """
    if is_kernel(instance) and \
            flavor.memory_mb < instance.flavor.memory_mb:
        raise exception.GuestNotStarted(
            reason='flavor: memory %d MiB is less than the %d MiB that the '
                   'server has; make a server of the smaller flavor'
                   % (flavor.memory_mb, instance.flavor.memory_mb))


def require_ramdisk(context, instance, images, info):
    """Note the RAM disk of a server, or that it has none.

    :param images: image.Images
    :raises: GuestNotStarted; ImageNotFound for one that the tenant cannot
        see
    """
    instance.system_metadata.pop(_RAMDISK_KEY, None)
    if is_kernel(instance) and instance.ramdisk_id:
        found = images.format_of(context, instance.ramdisk_id)
        if found != RAMDISK_FORMAT:
            raise _bad('ramdisk_id %s: expected an image of disk_format %s, '
                       'got %s' % (instance.ramdisk_id, RAMDISK_FORMAT,
                                   found))
        instance.system_metadata[_RAMDISK_KEY] = images.require(
            context, instance.ramdisk_id, info)


def needs(instance, network_info, tags):
    """Return configuration, number, confirm and kernel of Guests.start().

    :param tags: tag by the id of the port
    :raises: GuestNotStarted for a bad command line
    """
    kernel = {'command_line': _line(instance, network_info, tags)}
    sha256 = instance.system_metadata.get(_RAMDISK_KEY)
    if sha256:
        kernel['ramdisk_sha256'] = sha256
    return _NO_CONFIGURATION, 0, None, kernel


def provide_ramdisk(context, instance, images, info):
    """Give the host the RAM disk of a server that has one.

    :returns: True if the host did not have it
    :raises: as image.Images.provide()
    """
    sha256 = instance.system_metadata.get(_RAMDISK_KEY)
    return bool(sha256) and images.provide(
        context, instance.ramdisk_id, sha256, info)


def _line(instance, network_info, tags):
    line = userdata.image_property(instance, _LINE) or _DEFAULT_LINE
    if len(line.encode()) > userdata.MAX_PROPERTY_BYTES:
        raise _bad('%s: at most %d bytes are possible'
                   % (_LINE, userdata.MAX_PROPERTY_BYTES))
    if not _PRINTABLE.fullmatch(line):
        raise _bad('%s: expected printable characters of ASCII and blanks, '
                   'got %.60r' % (_LINE, line))
    return named_ports.substitute(line, network_info, tags)


def _bad(reason):
    return exception.GuestNotStarted(reason='image property %s' % reason)
