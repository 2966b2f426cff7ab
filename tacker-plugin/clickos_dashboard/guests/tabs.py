# SPDX-License-Identifier: Apache-2.0
"""The tabs about one guest, for pages of VNFs and of guests."""

import functools

from clickos_client import flow_log
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tabs
from openstack_dashboard import api

from clickos_dashboard.api import sessions
from clickos_dashboard.guests import counters
from clickos_dashboard.guests import tables
from clickos_dashboard import paging
from clickos_dashboard.vnfs import tables as vnf_tables

_CONSOLE_LINES = 200


class GuestTab(tabs.Tab):
    """A tab about one guest, which the query chooses."""

    preload = False

    @property
    def vnf(self):
        """The VNF of the page; None for a guest without one."""
        return self.tab_group.kwargs['vnf']

    @property
    def guests(self):
        """All guests of the page."""
        return self.tab_group.kwargs['guests']

    @functools.cached_property
    def guest(self):
        """The chosen guest, or the first, or None."""
        wanted = self.request.GET.get('guest')
        guests = [g for g in self.guests if g.server_id]
        return next((g for g in guests if g.server_id == wanted),
                    guests[0] if guests else None)

    def get_context_data(self, request, **kwargs):
        """Add VNF and guest."""
        return {**super().get_context_data(request, **kwargs),
                'vnf': self.vnf, 'guests': self.guests,
                'guest': self.guest,
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


class Graph(GuestTab):
    """The live graph."""

    name = _('Graph')
    slug = 'graph'
    template_name = 'clickos/tab_graph.html'


class Handlers(GuestTab, tabs.TableTab):
    """The handlers of a guest."""

    name = _('Handlers')
    slug = 'handlers'
    template_name = 'clickos/tab_handlers.html'
    table_classes = (vnf_tables.Handlers,)

    def get_handlers_data(self):
        """Ask the guest."""
        found = self.ask(sessions.clickos(self.request).list_handlers,
                         _('The guest does not list its handlers.'), [])
        return self._tables['handlers'].search.found(
            [{**each, 'vnf_id': self.vnf and self.vnf.id,
              'server_id': self.guest.server_id} for each in found])


class Configuration(GuestTab):
    """The configuration that runs."""

    name = _('Configuration')
    slug = 'configuration'
    template_name = 'clickos/tab_configuration.html'

    def get_context_data(self, request, **kwargs):
        """Ask the guest."""
        context = super().get_context_data(request, **kwargs)
        client = sessions.clickos(request)
        context['text'] = self.ask(
            lambda server: client.read(server, 'config'),
            _('The guest does not show its configuration.'), '')
        return context


class Console(GuestTab):
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


class Counters(GuestTab):
    """Counters and rates of ports and elements, as plots."""

    name = _('Counters')
    slug = 'counters'
    template_name = 'clickos/tab_counters.html'

    def get_context_data(self, request, **kwargs):
        """Ask the switch for the ports."""
        context = super().get_context_data(request, **kwargs)
        client = sessions.clickos(request)
        context['ports'] = self.ask(
            lambda server: counters.named_ports(request, client, server),
            _('The switch does not show the ports.'), [])
        return context


class Events(GuestTab, tabs.TableTab):
    """The events of the guest that Nova keeps."""

    name = _('Events')
    slug = 'events'
    template_name = 'clickos/tab_events.html'
    table_classes = (tables.Events,)

    def get_events_data(self):
        """Ask Nova, which gives the newest ones first."""
        found = self.ask(
            lambda server: api.nova.instance_action_list(
                self.request, server),
            _('Nova does not list events.'), [])
        failures = self.ask(
            sessions.clickos(self.request).start_failures,
            _('clickos-api does not tell why starts failed.'), {})
        for each in found:
            # Nova tells members only that it failed.
            each.message = '; '.join(failures.get(
                each.request_id, ())) or each.message
        return self._tables['events'].search.found(found)[:paging.MOST_ROWS]


class Drops(GuestTab, tabs.TableTab):
    """Which rule dropped what."""

    name = _('Dropped')
    slug = 'drops'
    template_name = 'clickos/tab_drops.html'
    table_classes = (tables.Drops,)

    def get_drops_data(self):
        """Ask the guest for its flow logs."""
        client = sessions.clickos(self.request)
        found = self.ask(
            lambda server: flow_log.read(client, server),
            _('The guest does not show what it dropped.'))
        return self._tables['drops'].search.found(found or [])


ALL = (Graph, Counters, Drops, Handlers, Configuration, Events, Console)


class GuestTabs(tabs.TabGroup):
    """All tabs of a guest without a VNF."""

    slug = 'guest'
    tabs = ALL
    sticky = True
