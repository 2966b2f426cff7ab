# SPDX-License-Identifier: Apache-2.0
"""What the lab reports instead of a traceback."""


class LabError(Exception):
    """Something an operator can mend; the text names the place and cure."""
