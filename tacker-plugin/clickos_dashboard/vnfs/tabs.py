# SPDX-License-Identifier: Apache-2.0
"""The tabs of a VNF's page."""

import functools

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tabs
from openstack_dashboard import api

from clickos_dashboard.api import sessions
from clickos_dashboard.api import tacker
from clickos_dashboard.vnfs import tables

#: Marks the Neutron ports of a VNF.
_MARK = 'clickos-vnf:%s'
_CONSOLE_LINES = 200


class _GuestTab(tabs.Tab):
    """A tab about one guest, which the query chooses."""

    preload = False

    @property
    def vnf(self):
        return self.tab_group.kwargs['vnf']

    @functools.cached_property
    def guest(self):
        """The chosen guest, or the first, or None."""
        wanted = self.request.GET.get('guest')
        guests = [g for g in self.vnf.guests if g.server_id]
        return next((g for g in guests if g.server_id == wanted),
                    guests[0] if guests else None)

    def get_context_data(self, request, **kwargs):
        """Add VNF and guest."""
        return {**super().get_context_data(request, **kwargs),
                'vnf': self.vnf, 'guest': self.guest,
                'tab_param': self.tab_group.param_name,
                'tab_id': self.get_id()}

    def ask(self, question, complaint, nothing=None):
        """Return an answer about the guest, or show a complaint."""
        if self.guest is None:
            return nothing
        try:
            return question(self.guest.server_id)
        except Exception:
            exceptions.handle(self.request, complaint)
            return nothing


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
            return api.neutron.port_list(self.request,
                                         description=_MARK % vnf.id)
        except Exception:
            exceptions.handle(self.request,
                              _('Neutron does not list ports.'))
            return []


class Graph(_GuestTab):
    """The live graph."""

    name = _('Graph')
    slug = 'graph'
    template_name = 'clickos/tab_graph.html'


class Handlers(_GuestTab, tabs.TableTab):
    """The handlers of a guest."""

    name = _('Handlers')
    slug = 'handlers'
    template_name = 'clickos/tab_handlers.html'
    table_classes = (tables.Handlers,)

    def get_handlers_data(self):
        """Ask the guest."""
        found = self.ask(sessions.clickos(self.request).list_handlers,
                         _('The guest does not list its handlers.'), [])
        return [{**each, 'vnf_id': self.vnf.id,
                 'server_id': self.guest.server_id} for each in found]


class Configuration(_GuestTab):
    """The configuration that runs."""

    name = _('Configuration')
    slug = 'configuration'
    template_name = 'clickos/tab_text.html'

    def get_context_data(self, request, **kwargs):
        """Ask the guest."""
        context = super().get_context_data(request, **kwargs)
        client = sessions.clickos(request)
        context['text'] = self.ask(
            lambda server: client.read(server, 'config'),
            _('The guest does not show its configuration.'), '')
        return context


class Console(_GuestTab):
    """The end of the console's log."""

    name = _('Console log')
    slug = 'console'
    template_name = 'clickos/tab_text.html'

    def get_context_data(self, request, **kwargs):
        """Ask Nova."""
        context = super().get_context_data(request, **kwargs)
        context['text'] = self.ask(
            lambda server: api.nova.server_console_output(
                request, server, tail_length=_CONSOLE_LINES),
            _('Nova does not show the console.'), '')
        return context


class Operations(tabs.TableTab):
    """The operations on the VNF."""

    name = _('Operations')
    slug = 'operations'
    template_name = 'horizon/common/_detail_table.html'
    table_classes = (tables.Operations,)
    preload = False

    def get_operations_data(self):
        """Ask Tacker."""
        try:
            return tacker.operations(self.request,
                                     self.tab_group.kwargs['vnf'].id)
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list operations.'))
            return []


class VnfTabs(tabs.TabGroup):
    """All tabs."""

    slug = 'vnf'
    tabs = (State, Graph, Handlers, Configuration, Console, Operations)
    sticky = True
