# SPDX-License-Identifier: Apache-2.0
"""The tabs of a VNF's page."""

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tabs

from clickos_dashboard.api import networks
from clickos_dashboard.api import tacker
from clickos_dashboard.guests import tabs as guest_tabs
from clickos_dashboard import paging
from clickos_dashboard.vnfs import tables


class State(tabs.Tab):
    """State, reason, properties, guests and ports."""

    name = _('State')
    slug = 'state'
    template_name = 'clickos/tab_state.html'

    def get_context_data(self, request, **kwargs):
        """Ask Neutron for the ports."""
        vnf, = networks.connected(request, [self.tab_group.kwargs['vnf']])
        return {'vnf': vnf, 'status': dict(tables.STATUS)[vnf.status]}


class Operations(tabs.TableTab):
    """The operations on the VNF."""

    name = _('Operations')
    slug = 'operations'
    template_name = 'clickos/tab_operations.html'
    table_classes = (tables.Operations,)
    preload = False

    def get_context_data(self, request, **kwargs):
        """Add the tab's name, for the address of a search."""
        return {**super().get_context_data(request, **kwargs),
                'tab_id': self.get_id()}

    def get_operations_data(self):
        """Ask Tacker; the newest ones come first."""
        try:
            return self._tables['operations'].search.found(
                tacker.operations(
                    self.request, self.tab_group.kwargs['vnf'].id,
                    has_requests=True))[:paging.MOST_ROWS]
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list operations.'))
            return []


class VnfTabs(tabs.TabGroup):
    """All tabs."""

    slug = 'vnf'
    tabs = (State, *guest_tabs.ALL, Operations)
    sticky = True
