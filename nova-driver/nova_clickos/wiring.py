# SPDX-License-Identifier: Apache-2.0
"""Waits until Neutron calls a guest's ports active (docs/adr/0021)."""

import contextlib

from nova import exception as nova_exception
from oslo_log import log as logging

from nova_clickos.conf import CONF

LOG = logging.getLogger(__name__)

_PLUGGED = 'network-vif-plugged'


class Wiring:
    """Nova's wait for events of Neutron."""

    def __init__(self, virtapi):
        self._virtapi = virtapi

    @contextlib.contextmanager
    def awaited(self, instance, network_info, undo):
        """Wait, after the code inside, for the ports that it plugs.

        Without an event the guest stays, or goes if ``[DEFAULT]
        vif_plugging_is_fatal`` says so.

        :param undo: removes the guest of an instance.
        :raises: VirtualInterfaceCreateException
        """
        try:
            with self._virtapi.wait_for_instance_event(
                    instance, _events(network_info),
                    timeout=CONF.vif_plugging_timeout,
                    error_callback=_failed):
                yield
        except nova_exception.InstanceEventTimeout:
            LOG.warning('Neutron did not call the ports active within '
                        '%d s', CONF.vif_plugging_timeout, instance=instance)
            if CONF.vif_plugging_is_fatal:
                undo(instance)
                raise nova_exception.VirtualInterfaceCreateException()
        except nova_exception.VirtualInterfaceCreateException:
            undo(instance)
            raise


def _events(network_info):
    """List the events to wait for.

    A port that is active already changes no more, and one that is disabled
    does not forward.
    """
    if not CONF.vif_plugging_timeout:
        return []
    return [(_PLUGGED, vif['id']) for vif in network_info or ()
            if vif.get('active', True) is False
            and vif['details'].get('vale_link_up', True)]


def _failed(event_name, instance):
    LOG.error('Neutron reports that %s failed', event_name,
              instance=instance)
    if CONF.vif_plugging_is_fatal:
        raise nova_exception.VirtualInterfaceCreateException()
    return True
