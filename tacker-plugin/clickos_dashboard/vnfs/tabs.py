# SPDX-License-Identifier: Apache-2.0
"""The tabs of a VNF's page."""

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tabs
from openstack_dashboard import api

from clickos_dashboard.api import tacker
from clickos_dashboard.guests import tabs as guest_tabs
from clickos_dashboard import paging
from clickos_dashboard.vnfs import tables

#: Marks the Neutron ports of a VNF.
_MARK = 'clickos-vnf:%s'


class State(tabs.Tab):
    """State, reason, properties, guests and ports."""

    name = _('State')
    slug = 'state'
    template_name = 'clickos/tab_state.html'

    def get_context_data(self, request, **kwargs):
        """Ask Neutron for the ports."""
        vnf = self.tab_group.kwargs['vnf']
        return {'vnf': vnf, 'status': dict(tables.STATUS)[vnf.status],
                'ports': self._ports(vnf)}

    def _ports(self, vnf):
        try:
            return api.neutron.port_list(
                self.request, description=_MARK % vnf.id,
                project_id=self.request.user.tenant_id)
        except Exception:
            exceptions.handle(self.request,
                              _('Neutron does not list ports.'))
            return []


class Operations(tabs.TableTab):
    """The operations on the VNF."""

    name = _('Operations')
    slug = 'operations'
    template_name = 'clickos/tab_table.html'
    table_classes = (tables.Operations,)
    preload = False

    def get_operations_data(self):
        """Ask Tacker; the newest ones come first."""
        try:
            return tacker.operations(
                self.request,
                self.tab_group.kwargs['vnf'].id)[:paging.MOST_ROWS]
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list operations.'))
            return []


class VnfTabs(tabs.TabGroup):
    """All tabs."""

    slug = 'vnf'
    tabs = (State, *guest_tabs.ALL, Operations)
    sticky = True
