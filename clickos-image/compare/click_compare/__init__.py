# SPDX-License-Identifier: Apache-2.0
"""Random configurations, run by this project's click and by another."""
