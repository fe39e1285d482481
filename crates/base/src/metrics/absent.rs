//! HBase attributes that have no meaning here, shown as zero for clients that expect them.

use std::time::Duration;

use crate::metrics::{Declared, Histogram, Instrument, Kind, Meter, Scope, Sizes, Times, Unit};

/// Shows `declared` with the value of something that never happened.
#[doc(hidden)]
pub fn show_absent(declared: &Declared, scope: &mut Scope<'_>) {
    match declared.kind {
        Kind::Counter => scope.counter(declared, "", 0),
        Kind::Gauge if has_fraction(declared.unit) => scope.gauge(declared, "", 0.0),
        Kind::Gauge => scope.gauge(declared, "", 0_u64),
        Kind::Tag => scope.tag(declared, ""),
        Kind::Histogram => show_unused::<Histogram>(declared, scope),
        Kind::Times => show_unused::<Times>(declared, scope),
        Kind::Sizes => show_unused::<Sizes>(declared, scope),
        Kind::Meter => show_unused::<Meter>(declared, scope),
    }
}

fn has_fraction(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Percent | Unit::Share | Unit::PerSecond | Unit::Mebibytes | Unit::AverageMilliseconds
    )
}

fn show_unused<I: Instrument>(declared: &Declared, scope: &mut Scope<'_>) {
    I::begin(Duration::ZERO).show(declared, scope);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::testing::Shown;
    use crate::metrics::{Declares, Source};

    crate::absent! {
        /// Absent attributes for these tests.
        struct Nothing in "RegionServer,sub=Replication" {
            /// Edits sent.
            Counter = "source.shippedOps",
            /// Percentage of local blocks.
            Gauge = "percentFilesLocal" in Percent,
            /// Age of the edits.
            Times = "Source.ageOfLastShippedOp",
            /// Owner.
            Tag = "owner",
        }
    }

    #[test]
    fn absent_attributes_are_shown_without_events() {
        let mut shown = Shown::default();
        Nothing.show(&mut Scope::of(Duration::from_secs(1), &mut shown));
        for (name, value) in [
            ("source.shippedOps", "0"),
            ("percentFilesLocal", "0.0"),
            ("Source.ageOfLastShippedOp_num_ops", "0"),
            ("Source.ageOfLastShippedOp_99.9th_percentile", "0"),
            ("tag.owner", ""),
        ] {
            assert_eq!(shown.of(name), Some(value), "{name}");
        }
        let age = Nothing::DECLARED[2];
        assert_eq!((age.kind, age.unit, age.help), (Kind::Times, Unit::Milliseconds, "Age of the edits."));
    }
}
