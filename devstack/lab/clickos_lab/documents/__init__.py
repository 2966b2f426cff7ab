# SPDX-License-Identifier: Apache-2.0
"""Runs what documents tell people to type; see ``suites/documents.py``."""
