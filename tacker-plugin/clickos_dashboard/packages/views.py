# SPDX-License-Identifier: Apache-2.0
"""The pages of VNF packages."""

from django.urls import reverse
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import tables
from horizon import views

from clickos_dashboard.api import descriptor
from clickos_dashboard.api import tacker
from clickos_dashboard.packages import catalog
from clickos_dashboard.packages import forms as package_forms
from clickos_dashboard.packages import tables as package_tables
from clickos_dashboard import paging

_INDEX = 'horizon:clickos:packages:index'


def with_names(package):
    """Return a package with what the pages call it."""
    return {**package, 'title': package.get('vnfProductName') or package['id'],
            'provider': package.get('vnfProvider') or '',
            'version': package.get('vnfSoftwareVersion') or ''}


class IndexView(paging.PagedView):
    """The list of packages."""

    table_class = package_tables.Packages
    page_title = _('VNF packages')

    def get_data(self):
        """Ask Tacker."""
        try:
            return self.page([with_names(each) for each
                              in tacker.packages(self.request)])
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list packages.'))
            return []


class UploadView(forms.ModalFormView):
    """The form for a CSAR."""

    form_class = package_forms.UploadForm
    form_id = 'upload_package'
    template_name = 'clickos/upload.html'
    page_title = _('Upload package')
    submit_label = _('Upload')
    submit_url = reverse_lazy('horizon:clickos:packages:upload')
    success_url = reverse_lazy(_INDEX)


class CatalogView(tables.DataTableView):
    """The packages that the operator offers."""

    table_class = package_tables.Catalog
    template_name = 'clickos/table.html'
    page_title = _('Catalog')

    def get_data(self):
        """Compare the folder with the packages that Tacker lists."""
        try:
            present = {
                (each['title'], each['provider'], each['version'])
                for each in map(with_names, tacker.packages(self.request))}
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list packages.'))
            return []
        return self.get_table().search.found(
            [_offer(entry, present) for entry in catalog.entries()])


def _offer(entry, present):
    known = (entry.product, entry.provider, entry.version)
    return {'id': entry.id, 'title': entry.product or entry.id,
            'product': entry.product, 'version': entry.version,
            'text': entry.text, 'published': known in present}


class DetailView(views.HorizonTemplateView):
    """A package and what its descriptor offers."""

    template_name = 'clickos/package.html'
    page_title = '{{ package.title }}'

    def get_context_data(self, **kwargs):
        """Read package and descriptor."""
        context = super().get_context_data(**kwargs)
        package_id = self.kwargs['package_id']
        try:
            package = with_names(tacker.package(self.request, package_id))
        except Exception:
            exceptions.handle(self.request, _('No such package.'),
                              redirect=reverse(_INDEX))
        context['package'] = package
        if package['onboardingState'] == 'ONBOARDED':
            context['descriptor'] = self._descriptor(package_id)
        return context

    def _descriptor(self, package_id):
        try:
            return descriptor.read(
                tacker.package_content(self.request, package_id))
        except Exception:
            exceptions.handle(self.request,
                              _('The descriptor cannot be shown.'))
            return None
