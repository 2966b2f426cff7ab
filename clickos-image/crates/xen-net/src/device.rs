// SPDX-License-Identifier: Apache-2.0
//! What the guest sees of a network device, whichever its class is.
use crate::platform::EvtchnPort;
use alloc::vec::Vec;
use ring::PushError;

/// A network device. While its link is down nothing is received, and sending finds it full.
pub trait NetDevice {
    /// The hardware address.
    fn mac(&self) -> [u8; 6];
    /// Largest network packet in bytes, without the Ethernet header.
    fn mtu(&self) -> u16;
    /// Whether the backend is there.
    fn is_up(&self) -> bool;
    /// Copies the next frame to the start of `buffer`, which should have [`ring::BUFFER_SIZE`]
    /// bytes, and returns its length.
    fn pop(&mut self, buffer: &mut [u8]) -> Option<usize>;
    /// Copies a frame into the ring; the backend sees it after [`NetDevice::publish`].
    fn push(&mut self, frame: &[u8]) -> Result<(), PushError>;
    /// Shows the backend what was sent and gives back what was received; once per burst.
    fn publish(&mut self);
    /// Asks for an event, after a [`NetDevice::publish`]. True if there is something to do
    /// already: do not sleep. False: wait for an event of [`NetDevice::ports`].
    #[must_use = "sleeping after true can be forever"]
    fn sleep_prepare(&mut self) -> bool;
    /// Ends what `sleep_prepare` began; harmless at any time.
    fn wake_done(&mut self);
    /// Appends the event channels to wait for.
    fn ports(&self, into: &mut Vec<EvtchnPort>);
    /// What happened so far.
    fn counters(&self) -> Counters;
}

/// What a device did not pass on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames the backend could not deliver to us.
    pub rx_errors: u64,
    /// Received frames or descriptors that make no sense.
    pub malformed: u64,
    /// Received frames longer than a buffer.
    pub too_long: u64,
    /// Sent frames the backend did not take.
    pub tx_errors: u64,
    /// How often the backend broke the protocol, which closes the device.
    pub faults: u64,
}
