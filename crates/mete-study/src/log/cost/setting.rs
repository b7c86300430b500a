//! What is logged, by what, and between which tasks the message passes.

use mete_bench::traffic::Partner;
use mete_bench::user::scheduler::Logging;

/// The thesis' configurations, and one of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Setting {
    /// There is no probe in the code, and no program is attached.
    Native,
    /// The probe in the code is off; or the program is loaded, but not attached.
    Disabled,
    /// Logging is on, but the pair of domain and event is routed to no file.
    RoutedNowhere,
    /// Logging is on, with this number of entries.
    On(Logging),
}

impl Setting {
    pub(super) const ALL: [Setting; 7] = [
        Setting::Native,
        Setting::Disabled,
        Setting::RoutedNowhere,
        Setting::On(Logging::NoEntry),
        Setting::On(Logging::One),
        Setting::On(Logging::Four),
        Setting::FIVE,
    ];
    pub(super) const FIVE: Setting = Setting::On(Logging::Five);

    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Native => "native",
            Setting::Disabled | Setting::On(Logging::Disabled) => "disabled",
            Setting::RoutedNowhere => "routed nowhere",
            Setting::On(Logging::NoEntry) => "0 entries",
            Setting::On(Logging::One) => "1 entry",
            Setting::On(Logging::Four) => "4 entries",
            Setting::On(Logging::Five) => "5 entries",
        }
    }
}

/// What logs the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// A probe in the program, around the system calls that pass the message.
    Probes,
    /// The kernel component, at the switch that the message causes.
    Kernel,
}

impl Source {
    pub(super) const ALL: [Source; 2] = [Source::Probes, Source::Kernel];

    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Probes => "user probes",
            Source::Kernel => "kernel rows",
        }
    }
}

pub(super) const PARTNERS: [Partner; 2] = [Partner::OtherAddressSpace, Partner::SameAddressSpace];

pub(super) fn partner_name(partner: Partner) -> &'static str {
    match partner {
        Partner::OtherAddressSpace => "cross AS",
        Partner::SameAddressSpace => "intra AS",
    }
}

/// The name of a line of the table.
pub(super) fn line_name(source: Source, partner: Partner) -> String {
    format!("{}, {}", source.name(), partner_name(partner))
}
