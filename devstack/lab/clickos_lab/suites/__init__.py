# SPDX-License-Identifier: Apache-2.0
"""What ``make test`` runs: the list of suites, one after the other."""
