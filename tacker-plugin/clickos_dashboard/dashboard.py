# SPDX-License-Identifier: Apache-2.0
"""The dashboard "Network functions"."""

from django.utils.translation import gettext_lazy as _
import horizon


class NetworkFunctions(horizon.Dashboard):
    """VNF packages and VNFs of a project."""

    name = _('Network functions')
    slug = 'clickos'
    panels = ('overview', 'topology', 'packages', 'vnfs', 'guests',
              'chains')
    default_panel = 'overview'
    permissions = ('openstack.services.nfv-orchestration',)


horizon.register(NetworkFunctions)
