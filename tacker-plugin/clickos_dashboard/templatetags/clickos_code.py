# SPDX-License-Identifier: Apache-2.0
"""The filter "code"."""

from django import template

from clickos_dashboard import code

register = template.Library()
register.filter('code', code.escaped)
