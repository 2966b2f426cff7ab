# SPDX-License-Identifier: Apache-2.0
"""Which image a server may be made of, and how it comes to the host.

A process host never runs bytes from Glance: there an image only says which
engine a server is meant for, by its SHA-256. A Xen host runs the image;
cosmosd is given it once and keeps it, by its SHA-256 too.
"""

import hashlib
import tempfile
import threading

from cosmos_client import CosmosError
from nova.image import glance
from oslo_log import log as logging

from nova_clickos.conf import CONF
from nova_clickos import exception
from nova_clickos import host

LOG = logging.getLogger(__name__)

_MIB = 1024 * 1024


class Images:
    """Knows the SHA-256 of images; an active image never changes in Glance."""

    #: Images remembered; a cloud has one for each engine release.
    _CACHED = 64

    def __init__(self, client):
        self._client = client
        self._api = glance.API()
        self._lock = threading.Lock()
        self._known = {}

    def require(self, context, image_id, info):
        """Refuse an image that the host would not run.

        :param image_id: UUID, or None for a server without an image.
        :param info: what cosmosd says of the host.
        :returns: the image's SHA-256, hex digits
        :raises: GuestNotStarted
        """
        if not image_id:
            raise _bad('boot from volume: a ClickOS guest has no disk; use '
                       'the ClickOS image')
        sha256 = self._sha256(context, image_id)
        installed = (info['engine_sha256'] or '').lower()
        if info['host_kind'] == host.PROCESS and sha256 != installed:
            raise _bad('image %s (sha256 %s...) is not the ClickOS engine '
                       'installed on this host (sha256 %s...); use the image '
                       'the operator published'
                       % (image_id, sha256[:12], installed[:12]))
        return sha256

    def provide(self, context, image_id, sha256, info):
        """Give a Xen host an image, unless it has it.

        :returns: True if the host did not have it
        :raises: GuestNotStarted, HostCannotStart or CosmosdUnavailable
        """
        if info['host_kind'] == host.PROCESS or \
                sha256 == info['engine_sha256']:
            return False
        try:
            missing = sha256 not in self._on_host()
            if missing:
                self._send(context, image_id, sha256)
        except CosmosError as e:
            raise exception.from_start(e)
        return missing

    def format_of(self, context, image_id):
        """:returns: the disk_format; asks Glance as this tenant

        :raises: ImageNotFound
        """
        return self._api.get(context, image_id).get('disk_format')

    def property(self, context, image_id, name):
        """:returns: a whole property, None without one

        :raises: ImageNotFound
        """
        image = self._api.get(context, image_id)
        return (image.get('properties') or {}).get(name)

    def copy(self, context, image_id, copy_id, properties):
        """Give a new image in Glance the bytes of another one.

        :param properties: of the new image
        :raises: ImageNotFound, or GuestNotStarted for an image that is too
            large
        """
        image = self._api.get(context, image_id)
        with tempfile.TemporaryFile() as content:
            _download(self._api, context, image_id, content.write)
            content.seek(0)
            self._api.update(
                context, copy_id,
                {**{name: image[name]
                    for name in ('disk_format', 'container_format')},
                 'properties': properties}, content)

    def _on_host(self):
        return {known['sha256']
                for known in self._client.call('image-list')['images']}

    def _send(self, context, image_id, sha256):
        size = self._api.get(context, image_id)['size']
        LOG.info('Uploading image %s to the host (%d bytes)', image_id, size)
        self._client.image_add(sha256, size,
                               self._api.download(context, image_id))

    def _sha256(self, context, image_id):
        with self._lock:
            if image_id in self._known:
                return self._known[image_id]
        sha256 = self._ask(context, image_id)
        with self._lock:
            while len(self._known) >= self._CACHED:
                del self._known[next(iter(self._known))]
            self._known[image_id] = sha256
        return sha256

    def _ask(self, context, image_id):
        image = self._api.get(context, image_id)
        if image.get('os_hash_algo') == 'sha256' and image['os_hash_value']:
            return image['os_hash_value'].lower()
        limit = CONF.clickos.max_image_mib * _MIB
        if (image.get('size') or 0) > limit:
            raise _too_large(image_id, image['size'], limit)
        digest = hashlib.sha256()
        _download(self._api, context, image_id, digest.update)
        return digest.hexdigest()


def _download(api, context, image_id, take):
    limit = CONF.clickos.max_image_mib * _MIB
    size = 0
    for chunk in api.download(context, image_id):
        size += len(chunk)
        if size > limit:
            raise _too_large(image_id, size, limit)
        take(chunk)


def _too_large(image_id, size, limit):
    return _bad('image %s: %d bytes or more, a ClickOS image has at most %d '
                '([clickos] max_image_mib)' % (image_id, size, limit))


def _bad(reason):
    return exception.GuestNotStarted(reason=reason)
