# SPDX-License-Identifier: Apache-2.0
"""The contracts between the Python parts, each once.

The module api calls clickos-api over HTTP. The module rpc names the topic
between clickos-api and the agents. The module document reads and writes the
user_data of a server. The module limits has sizes that several parts check.
"""
