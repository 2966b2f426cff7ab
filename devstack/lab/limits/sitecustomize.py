# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start if this folder is on its path."""

import os

if os.environ.get('TEST_LIMIT_S'):
    import gc
    import time_limit
    time_limit.arm_from_environment()
    # Modules of OpenStack are most of the memory, and stay: with the usual
    # threshold a seventh of the processor time went into looking at them.
    gc.set_threshold(200_000, 100, 100)
