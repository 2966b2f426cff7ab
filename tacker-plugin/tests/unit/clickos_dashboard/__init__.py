# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard."""

import os

import django
from django.test import utils

os.environ.setdefault('DJANGO_SETTINGS_MODULE',
                      'tests.unit.clickos_dashboard.settings')
django.setup()
utils.setup_test_environment()
