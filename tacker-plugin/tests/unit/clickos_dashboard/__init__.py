# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard."""

import os
import tempfile
from unittest import mock

import django
from django.test import utils

os.environ.setdefault('DJANGO_SETTINGS_MODULE',
                      'tests.unit.clickos_dashboard.settings')
# Horizon's settings put a secret there, where another user's may lie.
with tempfile.TemporaryDirectory() as _folder, mock.patch.object(
        tempfile, 'gettempdir', autospec=True, return_value=_folder):
    django.setup()
utils.setup_test_environment()
