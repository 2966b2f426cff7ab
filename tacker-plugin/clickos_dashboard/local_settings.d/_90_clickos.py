# SPDX-License-Identifier: Apache-2.0
"""The policies of clickos-api and of Tacker, for the checks of actions.

And the policy of our pages' content. Horizon runs this text inside its
settings.
"""

from clickos_dashboard import policies

# pylint: disable=used-before-assignment  # Horizon's settings have them
POLICY_FILES = {**POLICY_FILES, **policies.FILES}  # noqa: F821
DEFAULT_POLICY_FILES = {**DEFAULT_POLICY_FILES,  # noqa: F821
                        **policies.DEFAULTS}
# The innermost one sees a page before others add to it.
MIDDLEWARE = (*MIDDLEWARE,  # noqa: F821
              'clickos_dashboard.content_security.Middleware')
