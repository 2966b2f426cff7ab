# SPDX-License-Identifier: Apache-2.0
"""The panel "VNF packages"."""

from django.utils.translation import gettext_lazy as _
import horizon

from clickos_dashboard import dashboard


class Packages(horizon.Panel):
    """The panel in the menu."""

    name = _('VNF packages')
    slug = 'packages'


dashboard.NetworkFunctions.register(Packages)
