# SPDX-License-Identifier: Apache-2.0
"""The form that uploads a CSAR."""

import time

from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import messages

from clickos_dashboard.api import tacker
from clickos_dashboard import exceptions as our_exceptions

#: tacker_clickos refuses larger packages.
MAX_BYTES = 4 * 1024 * 1024
_PATIENCE_S, _LOOK_S = 10, 0.3
_CSAR_HELP = _('A zip archive (CSAR) of at most 4 MiB')


class UploadForm(forms.SelfHandlingForm):
    """A CSAR; a refusal stands above the field, with file and line."""

    csar = django_forms.FileField(label=_('Package'), help_text=_CSAR_HELP)

    def clean_csar(self):
        """Refuse what Tacker would refuse for its size."""
        csar = self.cleaned_data['csar']
        if csar.size > MAX_BYTES:
            raise django_forms.ValidationError(
                _('%(size)d bytes, the limit is %(limit)d'),
                params={'size': csar.size, 'limit': MAX_BYTES})
        return csar

    def handle(self, request, data):
        """Make a package, upload, wait for Tacker's verdict."""
        try:
            package_id = tacker.create_package(request)
        except Exception:
            exceptions.handle(request, _('Tacker makes no package.'))
            return False
        try:
            tacker.upload_package(request, package_id, data['csar'].read())
            return self._wait(request, package_id)
        except our_exceptions.TackerError as exc:
            tacker.delete_package(request, package_id)
            self.api_error(str(exc))
            return False

    def _wait(self, request, package_id):
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            package = tacker.package(request, package_id)
            if package['onboardingState'] == 'ONBOARDED':
                messages.success(request, _('The package is ready.'))
                return package
            if package['onboardingState'] == 'CREATED':
                raise our_exceptions.TackerError(400, _(
                    'Tacker refuses the descriptor without a reason. The log'
                    ' of tacker-conductor has it.'))
            time.sleep(_LOOK_S)
        messages.info(request, _('Tacker is still reading the package.'))
        return package
