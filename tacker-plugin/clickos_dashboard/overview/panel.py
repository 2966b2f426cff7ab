# SPDX-License-Identifier: Apache-2.0
"""The panel "Overview"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Overview(horizon.Panel):
    """The panel in the menu."""

    name = _('Overview')
    slug = 'overview'


dashboard.NetworkFunctions.register(Overview)
