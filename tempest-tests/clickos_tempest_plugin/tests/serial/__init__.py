# SPDX-License-Identifier: Apache-2.0
"""Classes that run alone: they stop what tests of other workers need.

Each class is marked with ``decorators.serial``. The folder sorts behind the
others, so a worker comes to these classes last and few wait for them.
"""
