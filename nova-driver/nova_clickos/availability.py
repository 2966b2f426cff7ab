# SPDX-License-Identifier: Apache-2.0
"""Keeps the scheduler away from a host that cannot start guests now."""

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from nova_clickos.conf import CONF

LOG = logging.getLogger(__name__)

#: Marks a compute service as disabled by this driver; an operator's own
#: decision is never overridden.
PREFIX = 'AUTO: cosmosd: '


class Availability:
    """Disables and enables this host's compute service."""

    def __init__(self, virtapi):
        self._virtapi = virtapi

    def lost(self, reason):
        """Disable the service, or renew its reason; guests run on."""
        self._set(True, (PREFIX + reason)[:255])

    def found(self):
        """Enable the service if :meth:`lost` disabled it."""
        self._set(False, None)

    def _set(self, disabled, reason):
        context = nova_context.get_admin_context()
        try:
            service = objects.Service.get_by_compute_host(context, CONF.host)
        except nova_exception.ComputeHostNotFound:
            LOG.debug('The compute service is not registered yet')
            return
        is_changed = service.disabled != disabled
        is_news = disabled and service.disabled_reason != reason
        if not _ours(service) or not (is_changed or is_news):
            return
        service.disabled = disabled
        service.disabled_reason = reason
        service.save()
        if is_changed:
            LOG.info('Compute service %s',
                     'disabled' if disabled else 'enabled')
            self._set_trait(context, service)

    def _set_trait(self, context, service):
        """Tell placement at once; Nova's periodic task would do it later."""
        try:
            self._virtapi.update_compute_provider_status(
                context, service.compute_node.uuid, not service.disabled)
        except Exception as e:
            LOG.warning('Placement will learn the state of the compute '
                        'service with the next periodic update only: %s', e)


def _ours(service):
    return not service.disabled or \
        (service.disabled_reason or '').startswith(PREFIX)
