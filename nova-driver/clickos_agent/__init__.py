# SPDX-License-Identifier: Apache-2.0
"""The agent of a ClickOS host: handlers of its guests, by RPC."""
