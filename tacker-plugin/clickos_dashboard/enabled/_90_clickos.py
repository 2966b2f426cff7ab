# SPDX-License-Identifier: Apache-2.0
"""The dashboard "Network functions": Tacker's VNFs and their guests."""

from clickos_dashboard import exceptions

DASHBOARD = 'clickos'
ADD_INSTALLED_APPS = ['clickos_dashboard']
ADD_EXCEPTIONS = {
    'recoverable': exceptions.RECOVERABLE,
    'not_found': exceptions.NOT_FOUND,
    'unauthorized': exceptions.UNAUTHORIZED}
