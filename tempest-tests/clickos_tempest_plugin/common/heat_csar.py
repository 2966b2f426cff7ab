# SPDX-License-Identifier: Apache-2.0
"""The package of a VNF that is not ClickOS': one server, one port.

Tacker's stock driver makes a Heat stack of it. It compares the image's
checksum with Glance's, which has SHA-256 in a cloud with ClickOS.
"""

import hashlib
import io
import uuid
import zipfile

#: MiB of the server: only a host that is not ClickOS' has room.
MEMORY = 65536
_IMAGE = b'an image that nothing boots\n'

_META = '''\
TOSCA-Meta-File-Version: 1.0
CSAR-Version: 1.1
Created-By: clickos-tempest-plugin
Entry-Definitions: Definitions/plain.yaml

Name: Files/plain.img
Content-Type: application/octet-stream
Algorithm: SHA-256
Hash: {sha256}
'''

_TYPES = '''\
tosca_definitions_version: tosca_simple_yaml_1_2
data_types:
  tosca.datatypes.nfv.ChecksumData:
    derived_from: tosca.datatypes.Root
    properties:
      algorithm: {type: string}
      hash: {type: string}
  tosca.datatypes.nfv.SwImageData:
    derived_from: tosca.datatypes.Root
    properties:
      name: {type: string}
      version: {type: string}
      checksum: {type: tosca.datatypes.nfv.ChecksumData}
      container_format: {type: string}
      disk_format: {type: string}
      min_disk: {type: scalar-unit.size}
      size: {type: scalar-unit.size}
  tosca.datatypes.nfv.VduProfile:
    derived_from: tosca.datatypes.Root
    properties:
      min_number_of_instances: {type: integer}
      max_number_of_instances: {type: integer}
  tosca.datatypes.nfv.VirtualMemory:
    derived_from: tosca.datatypes.Root
    properties:
      virtual_mem_size: {type: scalar-unit.size}
  tosca.datatypes.nfv.VirtualCpu:
    derived_from: tosca.datatypes.Root
    properties:
      num_virtual_cpu: {type: integer}
  tosca.datatypes.nfv.VirtualLocalStorage:
    derived_from: tosca.datatypes.Root
    properties:
      size_of_storage: {type: scalar-unit.size}
artifact_types:
  tosca.artifacts.nfv.SwImage:
    derived_from: tosca.artifacts.Deployment.Image
capability_types:
  tosca.capabilities.nfv.VirtualBindable:
    derived_from: tosca.capabilities.Node
  tosca.capabilities.nfv.VirtualLinkable:
    derived_from: tosca.capabilities.Node
  tosca.capabilities.nfv.VirtualCompute:
    derived_from: tosca.capabilities.Node
    properties:
      virtual_memory: {type: tosca.datatypes.nfv.VirtualMemory}
      virtual_cpu: {type: tosca.datatypes.nfv.VirtualCpu}
      virtual_local_storage:
        type: list
        entry_schema: {type: tosca.datatypes.nfv.VirtualLocalStorage}
relationship_types:
  tosca.relationships.nfv.VirtualBindsTo:
    derived_from: tosca.relationships.DependsOn
    valid_target_types: [tosca.capabilities.nfv.VirtualBindable]
  tosca.relationships.nfv.VirtualLinksTo:
    derived_from: tosca.relationships.DependsOn
    valid_target_types: [tosca.capabilities.nfv.VirtualLinkable]
interface_types:
  tosca.interfaces.nfv.Vnflcm:
    derived_from: tosca.interfaces.Root
    instantiate: {}
    terminate: {}
node_types:
  tosca.nodes.nfv.VNF:
    derived_from: tosca.nodes.Root
    properties:
      descriptor_id: {type: string, required: false}
      descriptor_version: {type: string, required: false}
      provider: {type: string, required: false}
      product_name: {type: string, required: false}
      software_version: {type: string, required: false}
      vnfm_info:
        type: list
        required: false
        entry_schema: {type: string}
      flavour_id: {type: string, required: false}
      flavour_description: {type: string, required: false}
    requirements:
      - virtual_link:
          capability: tosca.capabilities.nfv.VirtualLinkable
          relationship: tosca.relationships.nfv.VirtualLinksTo
          occurrences: [0, 1]
    interfaces:
      Vnflcm: {type: tosca.interfaces.nfv.Vnflcm}
  tosca.nodes.nfv.Vdu.Compute:
    derived_from: tosca.nodes.Root
    properties:
      name: {type: string}
      description: {type: string}
      vdu_profile: {type: tosca.datatypes.nfv.VduProfile}
      sw_image_data: {type: tosca.datatypes.nfv.SwImageData}
    capabilities:
      virtual_compute: {type: tosca.capabilities.nfv.VirtualCompute}
      virtual_binding:
        type: tosca.capabilities.nfv.VirtualBindable
        occurrences: [1, UNBOUNDED]
  tosca.nodes.nfv.VduCp:
    derived_from: tosca.nodes.Root
    properties:
      layer_protocols:
        type: list
        entry_schema: {type: string}
      order: {type: integer}
    requirements:
      - virtual_link:
          capability: tosca.capabilities.nfv.VirtualLinkable
          relationship: tosca.relationships.nfv.VirtualLinksTo
          occurrences: [0, 1]
      - virtual_binding:
          capability: tosca.capabilities.nfv.VirtualBindable
          relationship: tosca.relationships.nfv.VirtualBindsTo
          node: tosca.nodes.nfv.Vdu.Compute
          occurrences: [0, 1]
  tosca.nodes.nfv.VnfVirtualLink:
    derived_from: tosca.nodes.Root
    capabilities:
      virtual_linkable: {type: tosca.capabilities.nfv.VirtualLinkable}
'''

_VNFD = '''\
tosca_definitions_version: tosca_simple_yaml_1_2
description: One server of Heat
imports:
  - plain_types.yaml
node_types:
  acme.nodes.Plain:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      product_name: {{type: string, default: Plain}}
    requirements:
      - virtual_link_left:
          capability: tosca.capabilities.nfv.VirtualLinkable
          occurrences: [0, 1]
topology_template:
  inputs: {{}}
  substitution_mappings:
    node_type: acme.nodes.Plain
    properties:
      flavour_id: simple
    requirements:
      virtual_link_left: [left, virtual_link]
  node_templates:
    VNF:
      type: acme.nodes.Plain
      properties:
        descriptor_id: {vnfd_id}
        descriptor_version: '1.0'
        provider: Acme
        product_name: Plain
        software_version: '1.0'
        vnfm_info: [Tacker]
        flavour_id: simple
        flavour_description: one server
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: VDU1
        description: a server
        vdu_profile: {{min_number_of_instances: 1, max_number_of_instances: 1}}
        sw_image_data:
          name: {image}
          version: '1'
          checksum: {{algorithm: sha-256, hash: {sha256}}}
          container_format: bare
          disk_format: raw
          min_disk: 0 GB
          size: 1 MB
      capabilities:
        virtual_compute:
          properties:
            virtual_memory: {{virtual_mem_size: {memory} MiB}}
            virtual_cpu: {{num_virtual_cpu: 1}}
            virtual_local_storage:
              - size_of_storage: 1 GB
      artifacts:
        image:
          type: tosca.artifacts.nfv.SwImage
          file: ../Files/plain.img
    left:
      type: tosca.nodes.nfv.VduCp
      properties: {{layer_protocols: [ipv4], order: 0}}
      requirements:
        - virtual_binding: VDU1
'''


def build(more=None):
    """Return the bytes of a package with a VNFD id of its own.

    :param more: {name: bytes} of further files
    """
    vnfd_id = uuid.uuid4()
    files = {
        'TOSCA-Metadata/TOSCA.meta': _META.format(
            sha256=hashlib.sha256(_IMAGE).hexdigest()),
        'Definitions/plain.yaml': _VNFD.format(
            vnfd_id=vnfd_id, image=f'plain-{vnfd_id}', memory=MEMORY,
            sha256=hashlib.sha256(_IMAGE).hexdigest()),
        'Definitions/plain_types.yaml': _TYPES, 'Files/plain.img': _IMAGE,
        **(more or {})}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as csar:
        for name, content in files.items():
            csar.writestr(name, content)
    return packed.getvalue()
