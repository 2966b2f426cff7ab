# SPDX-License-Identifier: Apache-2.0
"""The picture of the project, a table of the same, and their filter."""

from urllib import parse

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import views
from openstack_dashboard import api

from clickos_dashboard.api import chains as sfc
from clickos_dashboard.api import ports
from clickos_dashboard.api import tacker
from clickos_dashboard.overview import traffic
from clickos_dashboard.topology import layout
from clickos_dashboard.topology import model

#: VNFs of a page.
MOST_NODES = 24


class IndexView(views.HorizonTemplateView):
    """Networks, VNFs and chains of the project."""

    template_name = 'clickos/topology.html'
    page_title = _('Topology')

    def get_context_data(self, **kwargs):
        """Ask Tacker and Neutron, choose, and draw."""
        context = super().get_context_data(**kwargs)
        chains = self._ask(sfc.chains_with_ports,
                           _('Neutron does not list chains.'))
        networks = {each['id']: each.name_or_id for each in self._ask(
            _networks, _('Neutron does not list networks.'))}
        nodes = model.nodes(
            self._ask(tacker.vnfs, _('Tacker does not list VNFs.')),
            self._ask(ports.of_project, _('Neutron does not list ports.')),
            networks, chains)
        query = {name: self.request.GET.get(name, '').strip()[:255]
                 for name in ('network', 'chain', 'text')}
        found = [node for node in nodes if _is_wanted(node, query)]
        start = _start(self.request.GET.get('from'), len(found))
        shown = found[start:start + MOST_NODES]
        picture, colored = layout.draw(shown), layout.colored(shown)
        context.update(
            query=query, picture=picture, total=len(nodes),
            networks=sorted({network for node in nodes
                             for network in node.networks},
                            key=lambda network: network.name),
            chains=chains, rows=_rows(picture),
            shown_chains=colored[:layout.MOST_CHAINS],
            omitted_chains=len(colored[layout.MOST_CHAINS:]),
            guests_a_time=traffic.MOST, **_pages(query, start, len(found)))
        return context

    def _ask(self, question, complaint):
        try:
            return question(self.request)
        except Exception:
            exceptions.handle(self.request, complaint)
            return []


def _networks(request):
    return api.neutron.network_list_for_tenant(request,
                                               request.user.tenant_id)


def _is_wanted(node, query):
    text = query['text'].casefold()
    return ((not query['network'] or query['network'] in {
        network.id for network in node.networks})
        and (not query['chain'] or query['chain'] in {
            place.chain.id for place in node.places})
        and (not text or any(text in each.casefold() for each in (
            node.name, node.id, *(address for point in node.points
                                  for address in point.addresses)))))


def _start(text, count):
    """Return the number of the first VNF of a page, which the query names."""
    start = int(text) if text and text.isascii() and text.isdigit() \
        and len(text) < 8 else 0
    return start if start < count else 0


def _pages(query, start, count):
    """Return what a page says about the others."""
    def address(place):
        return '?' + parse.urlencode({**query, 'from': place})

    end = min(start + MOST_NODES, count)
    return {'first': start + 1, 'last': end, 'count': count,
            'before': start and address(max(0, start - MOST_NODES)),
            'after': end < count and address(end)}


def _rows(picture):
    """Return (node, key, point) of the table; an edge has the same key."""
    return [(box.node, f'{number}-{at}', point)
            for number, box in enumerate(picture.boxes)
            for at, point in enumerate(box.node.points)]
