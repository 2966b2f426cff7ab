// SPDX-License-Identifier: Apache-2.0
//! The properties by which a guest of the pool suits a request.

use crate::host::Domain;
use crate::spec::Spec;

/// The properties of a guest of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub image_sha256: String,
    pub memory_mib: u32,
}

impl Shape {
    pub fn of(spec: &Spec) -> Self {
        Self {
            image_sha256: spec.image_sha256.clone(),
            memory_mib: spec.memory_mib,
        }
    }

    pub fn of_domain(domain: &Domain) -> Self {
        Self {
            image_sha256: domain.image_sha256.clone(),
            memory_mib: domain.memory_mib,
        }
    }
}
