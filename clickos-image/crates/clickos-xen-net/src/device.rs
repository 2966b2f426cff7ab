// SPDX-License-Identifier: Apache-2.0
//! What the guest sees of a network device, whichever its class is.
use crate::counting_platform::Costs;
use crate::platform::EvtchnPort;
use alloc::vec::Vec;
use click_core::{Batch, PacketPool};
use ring::PushError;

/// A network device. While its link is down nothing is received, and sending finds it full.
pub trait NetDevice {
    /// The hardware address.
    fn mac(&self) -> [u8; 6];
    /// Largest network packet in bytes, without the Ethernet header.
    fn mtu(&self) -> u16;
    /// Gives a preconnected device its address and its largest packet.
    fn set_identity(&mut self, mac: [u8; 6], mtu: u16);
    /// True if the backend is there.
    fn is_up(&self) -> bool;
    /// Appends up to `max` received packets to `out`; returns how many. New ones come from the pool.
    fn receive(&mut self, max: usize, pool: &mut PacketPool, out: &mut Batch) -> usize;
    /// Puts packets from the front of `batch` into the ring and leaves what does not fit; returns how
    /// many it took. The backend sees them after [`NetDevice::publish`].
    fn transmit(&mut self, batch: &mut Batch) -> usize;
    /// Shows the backend what was sent and gives back what was received; once per burst.
    fn publish(&mut self);
    /// Asks for an event, after a [`NetDevice::publish`]. True if something came since this was
    /// last asked: look at it before you sleep. False: wait for an event of [`NetDevice::ports`].
    #[must_use = "sleeping after true can be forever"]
    fn sleep_prepare(&mut self) -> bool;
    /// Ends what `sleep_prepare` began; harmless at any time.
    fn wake_done(&mut self);
    /// Appends the event channels to wait for.
    fn ports(&self, into: &mut Vec<EvtchnPort>);
    /// The counts so far.
    fn counters(&self) -> Counters;
}

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received, and their bytes.
    pub rx_packets: u64,
    pub rx_bytes: u64,
    /// Frames put into the ring, and their bytes.
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// How often a frame found the ring full, or the link down.
    pub tx_full: u64,
    /// Frames that no ring takes: too short or too long.
    pub tx_bad_length: u64,
    /// Frames the backend could not deliver to us.
    pub rx_errors: u64,
    /// Frames or descriptors of the backend that make no sense.
    pub malformed: u64,
    /// Received frames longer than a buffer.
    pub too_long: u64,
    /// Sent frames the backend did not take.
    pub tx_errors: u64,
    /// How often the backend broke the protocol, which closes the device.
    pub faults: u64,
    /// Events and grants.
    pub costs: Costs,
}

impl Counters {
    pub(crate) fn received(&mut self, length: usize) {
        self.rx_packets += 1;
        self.rx_bytes += length as u64;
    }

    pub(crate) fn sent(&mut self, length: usize, result: &Result<(), PushError>) {
        match result {
            Ok(()) => {
                self.tx_packets += 1;
                self.tx_bytes += length as u64;
            }
            Err(PushError::Full) => self.tx_full += 1,
            Err(PushError::BadLength(_)) => self.tx_bad_length += 1,
            Err(PushError::BadBuffer) => {} // The ring counts it as malformed.
        }
    }

    /// All of them by name.
    pub fn list(&self) -> [(&'static str, u64); 15] {
        [
            ("rx_packets", self.rx_packets),
            ("rx_bytes", self.rx_bytes),
            ("rx_errors", self.rx_errors),
            ("rx_too_long", self.too_long),
            ("tx_packets", self.tx_packets),
            ("tx_bytes", self.tx_bytes),
            ("tx_errors", self.tx_errors),
            ("tx_full", self.tx_full),
            ("tx_bad_length", self.tx_bad_length),
            ("malformed", self.malformed),
            ("faults", self.faults),
            ("events_sent", self.costs.events_sent),
            ("events_taken", self.costs.events_taken),
            ("grants_made", self.costs.grants_made),
            ("grants_ended", self.costs.grants_ended),
        ]
    }
}
