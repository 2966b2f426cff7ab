# SPDX-License-Identifier: Apache-2.0
"""The client of clickos-api and its openstackclient commands."""
