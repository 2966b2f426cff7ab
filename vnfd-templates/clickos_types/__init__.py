# SPDX-License-Identifier: Apache-2.0
"""Files that every VNF package has."""
