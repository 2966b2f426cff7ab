# SPDX-License-Identifier: Apache-2.0
"""Requests and answers: routes, checks, documents."""
