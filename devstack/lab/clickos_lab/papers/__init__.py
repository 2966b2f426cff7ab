# SPDX-License-Identifier: Apache-2.0
"""The papers' figures, measured on process hosts.

``make bench FIGURES="7 10"`` measures figures, ``FIGURES=all`` all of them.
It writes values and pictures into ``docs/reference/figures``.
"""
