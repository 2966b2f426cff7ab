# SPDX-License-Identifier: Apache-2.0
"""Compares engines of the Click language, packet by packet.

Traces and configurations are generated, every engine runs every
configuration on one CPU, and what the machine itself allows is measured
in the same run.
"""
