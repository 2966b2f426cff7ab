# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start if this folder is on its path."""

import os

if os.environ.get('TEST_LIMIT_S'):
    import time_limit
    time_limit.arm_from_environment()
