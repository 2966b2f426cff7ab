# SPDX-License-Identifier: Apache-2.0
"""Unit tests of the lab that give files to accounts, as root only can."""
