# SPDX-License-Identifier: Apache-2.0
"""The panel "Guests"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Guests(horizon.Panel):
    """The panel in the menu."""

    name = _('Guests')
    slug = 'guests'
    permissions = ('openstack.services.compute',)


dashboard.NetworkFunctions.register(Guests)
