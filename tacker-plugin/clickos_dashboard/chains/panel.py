# SPDX-License-Identifier: Apache-2.0
"""The panel "Chains"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Chains(horizon.Panel):
    """The panel in the menu."""

    name = _('Chains')
    slug = 'chains'
    permissions = ('openstack.services.network',)


dashboard.NetworkFunctions.register(Chains)
