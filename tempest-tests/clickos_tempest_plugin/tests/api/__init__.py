# SPDX-License-Identifier: Apache-2.0
"""One request, one answer; and what is refused."""
