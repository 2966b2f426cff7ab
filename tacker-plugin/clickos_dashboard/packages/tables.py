# SPDX-License-Identifier: Apache-2.0
"""The table of VNF packages."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from clickos_dashboard.api import tacker

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


class Delete(tables.DeleteAction):
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


class Packages(tables.DataTable):
    """One package a row."""

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
        table_actions = (Upload, Delete)
        row_actions = (Launch, Delete)

    def get_object_id(self, datum):
        """Return a package's id."""
        return datum['id']

    def get_object_display(self, datum):
        """Return a package's name."""
        return datum['title']

    def get_empty_message(self):
        """Say what to do next."""
        return _('There is no package yet. Upload a CSAR to begin.')
