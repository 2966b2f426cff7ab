# SPDX-License-Identifier: Apache-2.0
"""The name Nova loads: ``compute_driver = clickos.driver.ClickOSDriver``."""

from nova_clickos.driver import ClickOSDriver

__all__ = ('ClickOSDriver',)
