# SPDX-License-Identifier: Apache-2.0
"""The panel "VNFs"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Vnfs(horizon.Panel):
    """The panel in the menu."""

    name = _('VNFs')
    slug = 'vnfs'


dashboard.NetworkFunctions.register(Vnfs)
