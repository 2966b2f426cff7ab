// SPDX-License-Identifier: Apache-2.0
//! Reads packet captures to replay them, and makes captures.
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use ring::LONGEST;

use crate::arguments::Arguments;
use crate::frame::{Protocol, build};
use crate::report::Report;

/// Largest capture read, in bytes of frames.
const MAX_BYTES: usize = 256 << 20;
const SNAPLEN: u32 = 65_535;

/// The frames of a capture of Ethernet frames.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(|e| named(&e))?;
    let mut reader = PcapReader::new(BufReader::new(file)).map_err(|e| named(&e))?;
    if reader.header().datalink != DataLink::ETHERNET {
        return Err(named(&format!(
            "link type {:?} is not Ethernet",
            reader.header().datalink
        )));
    }
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while let Some(packet) = reader.next_packet() {
        let number = frames.len() + 1;
        let packet = packet.map_err(|e| named(&format!("frame {number}: {e}")))?;
        let length = packet.data.len();
        if !(14..=LONGEST).contains(&length) {
            return Err(named(&format!(
                "frame {number}: {length} bytes are outside 14..={LONGEST}"
            )));
        }
        bytes += length;
        if bytes > MAX_BYTES {
            return Err(named(&format!(
                "frame {number}: more than {MAX_BYTES} bytes in all"
            )));
        }
        frames.push(packet.data.into_owned());
    }
    if frames.is_empty() {
        Err(named(&"holds no frames"))
    } else {
        Ok(frames)
    }
}

/// Writes `-n` frames: TCP, UDP and ICMP in turn. Their time stamps show `-r` frames a second.
pub fn make(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let path = arguments.pcap.as_deref().ok_or("--pcap: is missing")?;
    if arguments.count == 0 {
        return Err("-n: is missing; a file needs an end".to_owned());
    }
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let file = BufWriter::new(File::create(path).map_err(|e| named(&e))?);
    let header = PcapHeader {
        snaplen: SNAPLEN,
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(file, header).map_err(|e| named(&e))?;
    let gap_s = 1.0 / arguments.rate.max(1) as f64;
    for number in 0..arguments.count {
        let protocol = [Protocol::Tcp, Protocol::Udp, Protocol::Icmp][(number % 3) as usize];
        let frame = build(arguments, protocol, number as u32)?;
        let time = Duration::from_secs_f64(gap_s * number as f64);
        let packet = PcapPacket {
            timestamp: time,
            orig_len: frame.len() as u32,
            data: Cow::Borrowed(&frame),
        };
        writer.write_packet(&packet).map_err(|e| named(&e))?;
        report.count(1, frame.len() as u64);
    }
    writer.into_writer().flush().map_err(|e| named(&e))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn arguments(path: &Path, count: &str) -> Arguments {
        Arguments::parse_from([
            "pkt-gen",
            "-f",
            "pcap-make",
            "--pcap",
            path.to_str().unwrap(),
            "-n",
            count,
        ])
    }

    #[test]
    fn a_made_capture_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pcap");
        let arguments = arguments(&path, "300");
        let mut report = Report::new(&arguments);
        make(&arguments, &mut report).unwrap();
        let frames = read(&path).unwrap();
        assert_eq!((frames.len(), report.packets), (300, 300));
        let protocols: Vec<_> = frames.iter().take(3).map(|f| f[23]).collect();
        assert_eq!(protocols, [6, 17, 1]);
    }

    #[test]
    fn the_error_names_a_file_that_is_no_capture() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pcap");
        assert!(read(&path).unwrap_err().contains("x.pcap"));
        std::fs::write(&path, b"text").unwrap();
        assert!(read(&path).unwrap_err().contains("x.pcap"));
        let arguments = arguments(&path, "0");
        assert!(
            make(&arguments, &mut Report::new(&arguments))
                .unwrap_err()
                .contains("-n")
        );
    }

    #[test]
    fn a_cut_capture_is_refused_with_the_frame() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pcap");
        let arguments = arguments(&path, "3");
        make(&arguments, &mut Report::new(&arguments)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        assert!(read(&path).unwrap_err().contains("frame 3"));
    }
}
