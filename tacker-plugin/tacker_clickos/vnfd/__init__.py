# SPDX-License-Identifier: Apache-2.0
"""From a SOL001 package to plain data that cannot be wrong."""
