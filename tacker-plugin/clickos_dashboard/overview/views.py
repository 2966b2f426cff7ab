# SPDX-License-Identifier: Apache-2.0
"""The first page: counts, what needs attention, hosts."""

from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import views
from openstack_dashboard import api
from openstack_dashboard import policy

from clickos_dashboard.api import tacker

_HOSTS = (('compute', 'os_compute_api:os-hypervisors:list-detail'),)


class IndexView(views.HorizonTemplateView):
    """Counts of VNFs and packages, troubled VNFs, hosts for admins."""

    template_name = 'clickos/overview.html'
    page_title = _('Network functions')

    def get_context_data(self, **kwargs):
        """Ask Tacker and, for an administrator, Nova."""
        context = super().get_context_data(**kwargs)
        vnfs = self._ask(tacker.vnfs, _('Tacker does not list VNFs.'))
        packages = self._ask(tacker.packages,
                             _('Tacker does not list packages.'))
        context.update(
            packages=len(packages), vnfs=len(vnfs),
            active=sum(vnf.status == 'active' for vnf in vnfs),
            guests=sum(len(vnf.guests) for vnf in vnfs),
            troubled=[vnf for vnf in vnfs if vnf.refusal
                      or vnf.status in ('failed', 'degraded')],
            hosts=self._hosts())
        return context

    def _hosts(self):
        if not policy.check(_HOSTS, self.request):
            return None
        return self._ask(api.nova.hypervisor_list,
                         _('Nova does not list hosts.'))

    def _ask(self, question, complaint):
        try:
            return question(self.request)
        except Exception:
            exceptions.handle(self.request, complaint)
            return []
