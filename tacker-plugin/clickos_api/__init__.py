# SPDX-License-Identifier: Apache-2.0
"""clickos-api: handlers of ClickOS guests over HTTP.

The only caller of clickos-agent and the only owner of desired state
(docs/adr/0072). The HTTP interface is described in docs/interfaces.md.
"""
