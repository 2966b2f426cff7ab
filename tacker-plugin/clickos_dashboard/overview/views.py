# SPDX-License-Identifier: Apache-2.0
"""The first page: counts, packets, what needs attention, hosts."""

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import views

from clickos_dashboard.api import tacker
from clickos_dashboard.overview import hosts as known_hosts
from clickos_dashboard.overview import traffic


class IndexView(views.HorizonTemplateView):
    """Counts of VNFs and packages, troubled VNFs, hosts for admins."""

    template_name = 'clickos/overview.html'
    page_title = _('Network functions')

    def get_context_data(self, **kwargs):
        """Ask Tacker and, for an administrator, Nova and Neutron."""
        context = super().get_context_data(**kwargs)
        vnfs = self._ask(tacker.vnfs, _('Tacker does not list VNFs.'))
        packages = self._ask(tacker.packages,
                             _('Tacker does not list packages.'))
        troubled = [vnf for vnf in vnfs if vnf.refusal
                    or vnf.status in ('failed', 'degraded')]
        hosts = self._hosts()
        context.update(
            packages=len(packages), vnfs=len(vnfs),
            active=sum(vnf.status == 'active' for vnf in vnfs),
            guests=[(vnf, guest) for vnf in vnfs for guest in vnf.guests
                    if guest.server_id],
            guests_a_time=traffic.MOST, troubled=troubled, hosts=hosts,
            is_troubled=bool(troubled or any(host.troubles
                                             for host in hosts or ())))
        return context

    def _hosts(self):
        if not known_hosts.allowed(self.request):
            return None
        return self._ask(known_hosts.listed,
                         _('Nova or Neutron lists no hosts.'))

    def _ask(self, question, complaint):
        try:
            return question(self.request)
        except Exception:
            exceptions.handle(self.request, complaint)
            return []
