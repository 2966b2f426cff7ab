# SPDX-License-Identifier: Apache-2.0
"""The panel "Guests": servers without a VNF, and pages about any guest."""
