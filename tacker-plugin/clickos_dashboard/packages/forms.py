# SPDX-License-Identifier: Apache-2.0
"""The form that uploads a CSAR."""

from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms

from clickos_dashboard import exceptions as our_exceptions
from clickos_dashboard.packages import onboarding

_CSAR_HELP = _('A zip archive (CSAR) of at most 4 MiB')


class UploadForm(forms.SelfHandlingForm):
    """A CSAR; a refusal stands above the field, with file and line."""

    csar = django_forms.FileField(label=_('Package'), help_text=_CSAR_HELP)

    def clean_csar(self):
        """Refuse what Tacker would refuse for its size."""
        csar = self.cleaned_data['csar']
        if csar.size > onboarding.MAX_BYTES:
            raise django_forms.ValidationError(
                _('%(size)d bytes, the limit is %(limit)d'),
                params={'size': csar.size, 'limit': onboarding.MAX_BYTES})
        return csar

    def handle(self, request, data):
        """Give the package to Tacker."""
        try:
            return onboarding.onboard(request, data['csar'].read())
        except our_exceptions.TackerError as exc:
            self.api_error(str(exc))
        except Exception:
            exceptions.handle(request, _('Tacker takes no package.'))
        return False
