# SPDX-License-Identifier: Apache-2.0
"""The services behind the pages, each with the user's token."""
