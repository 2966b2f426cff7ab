# SPDX-License-Identifier: Apache-2.0
"""A package goes to Tacker, which says whether it is good."""

import time

from clickos_client import catalog
from django.utils.translation import gettext_lazy as _
from horizon import messages

from clickos_dashboard.api import tacker
from clickos_dashboard import exceptions

MAX_BYTES = catalog.MAX_BYTES
_PATIENCE_S, _LOOK_S = 10, 0.3


def onboard(request, content):
    """Make a package, upload a CSAR, wait for Tacker's verdict.

    A package that Tacker refuses is deleted.

    :raises TackerError: with the reason of a refusal
    """
    package_id = tacker.create_package(request)
    try:
        tacker.upload_package(request, package_id, content)
        return _wait(request, package_id)
    except exceptions.TackerError:
        tacker.delete_package(request, package_id)
        raise


def _wait(request, package_id):
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        package = tacker.package(request, package_id)
        if package['onboardingState'] == 'ONBOARDED':
            messages.success(request, _('The package is ready.'))
            return package
        if package['onboardingState'] == 'CREATED':
            raise exceptions.TackerError(400, _(
                'Tacker refuses the descriptor without a reason. The log'
                ' of tacker-conductor has it.'))
        time.sleep(_LOOK_S)
    messages.info(request, _('Tacker is still reading the package.'))
    return package
