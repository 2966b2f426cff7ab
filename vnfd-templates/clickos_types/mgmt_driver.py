# SPDX-License-Identifier: Apache-2.0
# Tacker compares this file with its copy in the VNF package byte by byte, so
# it never changes: everything is in the base class.
from tacker_clickos import management


class ClickOSMgmtDriver(management.Management):
    pass
