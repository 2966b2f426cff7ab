// SPDX-License-Identifier: Apache-2.0
//! Numbers of ports, processing codes and flow codes, as the classes of Click and FastClick have them.
use std::collections::BTreeMap;

/// Classes with the same ports, processing and flow.
struct Shape {
    ports: &'static str,
    processing: &'static str,
    flow: &'static str,
    classes: &'static str,
}

const fn shape(
    ports: &'static str,
    processing: &'static str,
    flow: &'static str,
    classes: &'static str,
) -> Shape {
    Shape {
        ports,
        processing,
        flow,
        classes,
    }
}

/// The facts about Click 2.1, and FastClick's about classes that Click lacks.
#[rustfmt::skip]
fn shapes() -> Vec<Shape> {
    vec![
        shape("-/-", "a/a", "x/y", "
            Idle SimpleIdle
        "),
        shape("-/-", "ah/ah", "x/x", "
            DriverManager Script
        "),
        shape("-/1", "h/h", "x/x", "
            InputSwitch
        "),
        shape("-/1", "l/l", "x/x", "
            DRRSched PrioSched PullSwitch RoundRobinSched SimplePrioSched SimplePullSwitch
            SimpleRoundRobinSched StaticPullSwitch TimeSortedSched
        "),
        shape("-/=", "a/a", "#/#", "
            Suppressor
        "),
        shape("-/=", "h/h", "#/[^#]", "
            Hub
        "),
        shape("-/=+", "h/h", "#/[^#]", "
            ListenEtherSwitch
        "),
        shape("0-1/1", "h/a", "x/x", "
            ICMPPingSource
        "),
        shape("0-1/=", "h/h", "x/x", "
            RecordTimestamp
        "),
        shape("0/0", "a/a", "x/x", "
            ARPTable AnnotationInfo BalancedThreadSched ClickyInfo DevirtualizeInfo FlowInfo HandlerTask IPFieldInfo
            IPNameInfo IPRewriterPatterns Message NullTask QuitWatcher RandomSeed RoundRobinIPMapper
            SourceIPHashMapper SpinlockInfo StaticThreadSched FlowThreadSched
        "),
        shape("0/1", "a/a", "x/x", "
            EtherPauseSource FromIPSummaryDump FromTcpdump InfiniteSource RandomSource RatedSource
        "),
        shape("0/1", "h/h", "x/x", "
            ARPFaker RIPSend TCPIPSend TimedSource
        "),
        shape("0/1", "l/l", "x/x", "
            FastUDPFlows FastUDPSource
        "),
        shape("0/1-2", "a/ah", "x/x", "
            FromDump
        "),
        shape("0/1-2", "h/h", "x/x", "
            FromDevice
        "),
        shape("1-/1", "l/l", "x/x", "
            StrideSched
        "),
        shape("1-/1-", "h/h", "x/x", "
            ICMPPingRewriter IPAddrPairRewriter IPAddrRewriter IPRewriter TCPRewriter UDPRewriter
        "),
        shape("1-2/1-2", "a/a", "x/x", "
            AggregateCounter IPRateMonitor
        "),
        shape("1-2/1-2", "a/a", "xy/[xy]x", "
            Bypass
        "),
        shape("1/-", "a/a", "x/x", "
            IPsecAuthHMACSHA1 LookupIPRouteMP
        "),
        shape("1/-", "h/h", "x/x", "
            Classifier DirectIPLookup IPClassifier IPFilter LinearIPLookup LookupIP6Route PaintRR
            PaintSwitch RadixIPLookup RadixIPsecLookup RangeIPLookup SortedIPLookup StaticIPLookup
            StaticSwitch Switch
        "),
        shape("1/0", "a/a", "x/x", "
            Discard DiscardNoFree
        "),
        shape("1/0", "l/l", "x/x", "
            TimedSink
        "),
        shape("1/0-1", "a/a", "x/x", "
            ToDump
        "),
        shape("1/0-1", "a/h", "x/x", "
            ToIPSummaryDump
        "),
        shape("1/0-2", "l/h", "x/x", "
            ToDevice
        "),
        shape("1/1", "a/a", "x/x", "
            ARPPrint AdjustTimestamp AggregateLength AggregatePaint Align AverageCounter
            AverageCounterIMP AverageCounterMP CheckCRC32 CheckPacket Counter CounterMP
            DynamicUDPIPEncap EnsureEther EraseIPPayload EtherEncap EtherMirror EtherRewrite
            EtherVLANEncap FTPPortMapper FixIPSrc GTPDecap GTPEncap GetIP6Address GetIPAddress
            ICMP6Error ICMPError ICMPIPEncap ICMPPingEncap IP6Encap IP6Mirror IP6NDAdvertiser
            IP6Print IPEncap IPInputCombo IPMirror IPPrint IPsecAES IPsecDES IPsecESPEncap
            IPsecESPUnencap IPsecEncap MarkIP6Header MarkIPCE MarkIPHeader MarkMACHeader
            NotifierDebug Null Null1 Null2 Null3 Null4 Null5 Null6 Null7 Null8 NumberPacket Pad
            Paint Print ProtocolTranslator46 ProtocolTranslator64 RFC2507Comp RFC2507Decomp
            RandomBitErrors Resize SetAnnoByte SetCRC32 SetEtherAddress SetIP6Address SetIP6DSCP
            SetIPAddress SetIPChecksum SetIPDSCP SetIPECN SetPacketType SetRandIPAddress
            SetTCPChecksum SetTimestamp SetTimestampDelta SetVLANAnno SpinlockAcquire
            SpinlockRelease StoreData StoreTimestamp StoreUDPTimeSeqRecord Strip StripIPHeader
            StripToNetworkHeader StripTransportHeader TimeRange TimestampAccum Truncate
            TruncateIPPayload UDPIP6Encap UDPIPEncap Unstrip UnstripAnno UnstripIPHeader VLANDecap
            VLANEncap
        "),
        shape("1/1", "h/h", "x/x", "
            PushNull TCPFragmenter UpstreamNotifier
        "),
        shape("1/1", "l/h", "x/x", "
            BandwidthRatedUnqueue Burster DelayUnqueue LinkUnqueue RatedUnqueue TimedUnqueue Unqueue
            Unqueue2
        "),
        shape("1/1", "l/l", "x/x", "
            CoDel DelayShaper PullNull
        "),
        shape("1/1-", "h/h", "x/x", "
            CPUSwitch FlowHashSwitch HashSwitch ICMPRewriter RandomSwitch RoundRobinSwitch StrideSwitch Tee
        "),
        shape("1/1-", "l/lh", "x/x", "
            PullTee
        "),
        shape("1/1-2", "a/a", "x/x", "
            AnonymizeIPAddr GetEtherAddress
        "),
        shape("1/1-2", "a/ah", "x/x", "
            ARPResponder AdaptiveRED AggregateFirst AggregateIP AggregateIPFlows CheckARPHeader
            CheckICMPHeader CheckIP6Header CheckIPHeader CheckIPHeader2 CheckLength CheckPaint
            CheckTCPHeader CheckUDPHeader DecIP6HLIM DecIPTTL DropBroadcasts HostEtherFilter
            ICMPPingResponder IPGWOptions IPReassembler RED RandomSample SetUDPChecksum
            StoreEtherAddress StoreIPAddress StringMatcher StripEtherVLANHeader TimeFilter
        "),
        shape("1/1-2", "h/h", "x/x", "
            BandwidthRatedSplitter CheckNumberPacket IP6Fragmenter IPFragmenter RatedSplitter Search
            TimestampDiff
        "),
        shape("1/1-2", "h/lh", "x/x", "
            FrontDropQueue NotifierQueue Queue QuickNoteQueue SimpleQueue ThreadSafeQueue
        "),
        shape("1/1-2", "l/l", "x/x", "
            BandwidthShaper Shaper
        "),
        shape("1/1-254", "h/h", "x/x", "
            AggregateFilter
        "),
        shape("1/2", "a/a", "x/x", "
            Block CompareBlock
        "),
        shape("1/2", "a/ah", "x/x", "
            PaintTee
        "),
        shape("1/2-", "h/h", "x/x", "
            BandwidthMeter Meter
        "),
        shape("1/5", "h/h", "x/x", "
            IPOutputCombo
        "),
        shape("2-/=", "h/h", "#/[^#]", "
            EtherSwitch
        "),
        shape("2/1-2", "h/h", "xy/x", "
            ARPQuerier IP6NDSolicitor
        "),
        shape("2/1-2", "h/lh", "x/x", "
            MixedQueue
        "),
        shape("2/2", "a/a", "#/#", "
            Clipboard
        "),
        shape("2/2", "a/a", "x/x", "
            AddressTranslator
        "),
        shape("2/2", "l/l", "x/x", "
            ComparePackets
        "),
    ]
}

/// Classes that differ, what they have, and why.
const OTHERS: &[(&str, [&str; 3], &str)] = &[
    (
        "AddressTranslator",
        ["2/2", "a/a", "#/#"],
        "packets leave by the output with the number of their input",
    ),
    (
        "AggregateFilter",
        ["1/-", "h/h", "x/x"],
        "no limit of outputs",
    ),
    (
        "AggregateLength",
        ["1/1-2", "a/ah", "x/x"],
        "packets without the length may leave by output 1",
    ),
    (
        "AnonymizeIPAddr",
        ["1/1-2", "a/ah", "x/x"],
        "output 1 is pushed to, also where packets are pulled",
    ),
    (
        "Block",
        ["1/2", "a/ah", "x/x"],
        "output 1 is pushed to, also where packets are pulled",
    ),
    (
        "CompareBlock",
        ["1/2", "a/ah", "x/x"],
        "output 1 is pushed to, also where packets are pulled",
    ),
    (
        "EtherSwitch",
        ["-/=", "h/h", "#/[^#]"],
        "it may have one port",
    ),
    ("FromTcpdump", ["0/1-2", "a/ah", "x/x"], "it has FORCE_IP"),
    (
        "GetEtherAddress",
        ["1/1-2", "a/ah", "x/x"],
        "output 1 is pushed to, also where packets are pulled",
    ),
    (
        "ICMPPingSource",
        ["0-1/1", "h/a", "x/y"],
        "answers end at the input",
    ),
    (
        "IPRateMonitor",
        ["1-2/1-2", "a/a", "#/#"],
        "packets leave by the output with the number of their input",
    ),
    (
        "IPsecAuthHMACSHA1",
        ["1/1-2", "a/ah", "x/x"],
        "output 1 is pushed to, also where packets are pulled",
    ),
    (
        "LookupIPRouteMP",
        ["1/-", "h/h", "x/x"],
        "as the other look-ups, which push",
    ),
    (
        "RecordTimestamp",
        ["1/1", "h/h", "x/x"],
        "without ports FastClick has it for DPDK only",
    ),
    ("ToDevice", ["1/0-2", "a/h", "x/x"], "it may be pushed to"),
];

#[test]
fn the_classes_have_the_ports_of_click() {
    let registry = click_elements::registry();
    let ours: BTreeMap<&str, [&str; 3]> = registry
        .iter()
        .map(|(name, e)| (name, [e.class.ports, e.class.processing, e.class.flow]))
        .collect();
    let mut wrong = Vec::new();
    for shape in shapes() {
        let theirs = [shape.ports, shape.processing, shape.flow];
        for class in shape.classes.split_whitespace() {
            let expected = OTHERS.iter().find(|(name, ..)| *name == class);
            let expected = expected.map_or(theirs, |(_, codes, _)| *codes);
            match ours.get(class) {
                Some(found) if *found == expected => {}
                found => wrong.push(format!("{class}: {found:?}, expected {expected:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_difference_is_one() {
    for (class, codes, why) in OTHERS {
        let mut shapes = shapes().into_iter();
        let theirs = shapes.find(|s| s.classes.split_whitespace().any(|c| c == *class));
        let theirs = theirs.unwrap_or_else(|| panic!("{class} is not listed"));
        assert_ne!(
            *codes,
            [theirs.ports, theirs.processing, theirs.flow],
            "{class}: {why}"
        );
    }
}
