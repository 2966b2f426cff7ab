# SPDX-License-Identifier: Apache-2.0
"""The pages of guests that no VNF owns: servers of a ClickOS image."""

import functools

from clickos_client import vnf as client_vnf
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import tabs
from openstack_dashboard import api

from clickos_dashboard.guests import tables as guest_tables
from clickos_dashboard.guests import tabs as guest_tabs
from clickos_dashboard import paging
from clickos_dashboard.vnfs import views as vnf_views

_INDEX = 'horizon:clickos:guests:index'
#: Property of an image that a ClickOS host runs.
_MARK = 'clickos_sha256'


class IndexView(paging.PagedView):
    """The list of guests."""

    table_class = guest_tables.Guests
    page_title = _('Guests')

    def get_data(self):
        """Ask Glance for the images, and Nova for their servers."""
        try:
            images = {image.id for image in api.glance.image_list_detailed(
                self.request)[0] if _MARK in image.properties}
            servers = api.nova.server_list(self.request)[0]
            return self.page([server for server in servers
                              if _is_plain(server, images)])
        except Exception:
            exceptions.handle(self.request, _('Nova does not list servers.'))
            return []


def _is_plain(server, images):
    return (isinstance(server.image, dict)
            and server.image.get('id') in images
            and client_vnf.SERVER_KEY not in server.metadata)


class DetailView(tabs.TabbedTableView):
    """A guest's page."""

    tab_group_class = guest_tabs.GuestTabs
    template_name = 'clickos/vnf.html'
    page_title = '{{ server.name }}'

    @functools.cached_property
    def server(self):
        """The server of the address; one of another project is not found."""
        try:
            return api.nova.server_get(self.request,
                                       str(self.kwargs['server_id']))
        except Exception:
            exceptions.handle(self.request, _('No such guest.'),
                              redirect=reverse(_INDEX))

    def get_context_data(self, **kwargs):
        """Add the server."""
        context = super().get_context_data(**kwargs)
        context.update(server=self.server, url=reverse(_INDEX))
        return context

    def get_tabs(self, request, *args, **kwargs):
        """Give the guest to the tabs, as the only one of no VNF."""
        guest = client_vnf.Guest(self.server.id, self.server.name,
                                 self.server.id, self.server.status)
        return super().get_tabs(request, *args, **{
            **kwargs, 'vnf': None, 'guests': (guest,)})


class HandlerView(vnf_views.HandlerView):
    """A handler of a guest without a VNF."""

    vnf = None

    @property
    def home(self):
        """The guest's page."""
        return reverse('horizon:clickos:guests:detail',
                       args=(self.kwargs['server_id'],))

    tab = 'guest__handlers'
