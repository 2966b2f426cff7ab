# SPDX-License-Identifier: Apache-2.0
"""The table of VNF packages."""

from django import shortcuts
from django.template import defaultfilters as filters
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import exceptions
from horizon import tables

from clickos_dashboard import actions
from clickos_dashboard.api import tacker
from clickos_dashboard import exceptions as our_exceptions
from clickos_dashboard.packages import catalog
from clickos_dashboard.packages import onboarding
from clickos_dashboard import rows
from clickos_dashboard import searching

_CREATE = (('nfv-orchestration', 'os_nfv_orchestration_api:vnf_packages:'
                                 'upload_package_content'),)
_DELETE = (('nfv-orchestration',
            'os_nfv_orchestration_api:vnf_packages:delete'),)
_LAUNCH = (('nfv-orchestration',
            'os_nfv_orchestration_api:vnf_instances:instantiate'),)


class Upload(tables.LinkAction):
    """Opens the form for a CSAR."""

    name = 'upload'
    verbose_name = _('Upload package')
    url = 'horizon:clickos:packages:upload'
    classes = ('ajax-modal',)
    icon = 'upload'
    policy_rules = _CREATE


class OpenCatalog(tables.LinkAction):
    """Opens the list of packages that the operator offers."""

    name = 'catalog'
    verbose_name = _('Catalog')
    url = 'horizon:clickos:packages:catalog'
    icon = 'list'
    policy_rules = _CREATE

    def allowed(self, request, datum=None):
        """Only if the operator has configured one."""
        return catalog.configured()


class Launch(tables.LinkAction):
    """Opens the wizard for this package."""

    name = 'launch'
    verbose_name = _('Launch VNF')
    url = 'horizon:clickos:vnfs:launch'
    classes = ('ajax-modal',)
    policy_rules = _LAUNCH

    def allowed(self, request, datum=None):
        """Only an onboarded package can be launched."""
        return datum is not None and datum['onboardingState'] == 'ONBOARDED'


class Delete(actions.Delete):
    """Deletes packages."""

    policy_rules = _DELETE

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Delete package', 'Delete packages', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Deleted package', 'Deleted packages', count)

    def delete(self, request, obj_id):
        """Delete one."""
        tacker.delete_package(request, obj_id)

    def allowed(self, request, datum=None):
        """A package that a VNF uses stays."""
        return datum is None or datum.get('usageState') != 'IN_USE'


class Packages(searching.Searched):
    """One package a row."""

    states_of = 'state'
    nothing = _('There is no package yet. Upload a CSAR to begin.')

    name = tables.WrappingColumn(
        'title', verbose_name=_('Package'),
        link='horizon:clickos:packages:detail')
    provider = tables.Column('provider', verbose_name=_('Provider'),
                             classes=('clickos-wide',))
    version = tables.Column('version', verbose_name=_('Version'))
    state = tables.Column('onboardingState', verbose_name=_('State'))
    usage = tables.Column('usageState', verbose_name=_('Usage'),
                          classes=('clickos-wide',))

    class Meta(object):
        """Settings for Horizon."""

        name = 'packages'
        verbose_name = _('VNF packages')
        row_class = rows.Row
        table_actions = (Upload, OpenCatalog, Delete)
        row_actions = (Launch, Delete)

    def get_object_id(self, datum):
        """Return a package's id."""
        return datum['id']

    def get_object_display(self, datum):
        """Return a package's name."""
        return datum['title']


class Publish(tables.Action):
    """Uploads a package of the catalog, with one click."""

    name = 'publish'
    verbose_name = _('Publish')
    policy_rules = _CREATE

    def allowed(self, request, datum=None):
        """Only a package that can be read, and once."""
        return bool(datum and datum['product'] and not datum['published'])

    # The attribute of Horizon's action is for those without such a method.
    # pylint: disable-next=method-hidden
    def single(self, table, request, object_id):
        """Give the package to Tacker, and stay on the page."""
        try:
            onboarding.onboard(request, catalog.content(object_id))
        except our_exceptions.RECOVERABLE as exc:
            exceptions.handle(request, str(exc))
        return shortcuts.redirect('horizon:clickos:packages:catalog')


class Catalog(searching.Searched):
    """One package of the catalog a row."""

    nothing = _('The folder of the catalog has no package. An operator puts'
                ' CSARs there.')

    name = tables.WrappingColumn('title', verbose_name=_('Package'))
    version = tables.Column('version', verbose_name=_('Version'))
    text = tables.WrappingColumn('text', verbose_name=_('Description'),
                                 classes=('clickos-wide',))
    published = tables.Column('published', verbose_name=_('Published'),
                              filters=(filters.yesno,))

    class Meta(object):
        """Settings for Horizon."""

        name = 'catalog'
        verbose_name = _('Catalog')
        row_class = rows.Row
        row_actions = (Publish,)
        multi_select = False

    def get_object_id(self, datum):
        """Return the name of a package's file."""
        return datum['id']

    def get_object_display(self, datum):
        """Return a package's name."""
        return datum['title']
