# SPDX-License-Identifier: Apache-2.0
"""The panel "Topology"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Topology(horizon.Panel):
    """The panel in the menu."""

    name = _('Topology')
    slug = 'topology'
    permissions = ('openstack.services.network',)


dashboard.NetworkFunctions.register(Topology)
