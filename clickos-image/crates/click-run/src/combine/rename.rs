// SPDX-License-Identifier: Apache-2.0
//! Other devices for the ends of a chain: two components may call theirs by the same number.
use std::str::FromStr;

use click_lang::{Flat, FlatElement, text};

/// The classes whose first argument is a device.
const CLASSES: [&str; 3] = ["FromDevice", "PollDevice", "ToDevice"];

/// `COMPONENT.DEVICE=DEVICE`: elements of this device get another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    component: String,
    old: String,
    new: String,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(end, new)| {
            let (component, old) = end.split_once('.')?;
            let is_empty = component.is_empty() || old.is_empty() || new.is_empty();
            (!is_empty).then(|| Self {
                component: component.to_string(),
                old: old.to_string(),
                new: new.to_string(),
            })
        });
        parts.ok_or_else(|| format!("\"{text}\": expected COMPONENT.DEVICE=DEVICE"))
    }
}

/// Gives elements other devices, all at once.
///
/// # Errors
/// No element has one of these devices.
pub fn rename(flat: &mut Flat, devices: &[Device]) -> Result<(), String> {
    for device in devices {
        if !flat.elements.iter().any(|e| device.is_of(e)) {
            let Device { component, old, .. } = device;
            return Err(format!(
                "{component}.{old}: no {} of this device",
                CLASSES.join(" or ")
            ));
        }
    }
    for element in &mut flat.elements {
        if let Some(device) = devices.iter().find(|device| device.is_of(element)) {
            let mut args = text::split_args(&element.config);
            args[0].clone_from(&device.new);
            element.config = args.join(", ");
        }
    }
    Ok(())
}

impl Device {
    /// The component whose device it is.
    pub fn component(&self) -> &str {
        &self.component
    }

    fn is_of(&self, element: &FlatElement) -> bool {
        let own = element
            .name
            .strip_prefix(&self.component)
            .is_some_and(|rest| rest.starts_with('/'));
        let first = text::split_args(&element.config).into_iter().next();
        own && CLASSES.contains(&&*element.class)
            && first.is_some_and(|arg| text::unquote(&arg) == self.old)
    }
}
