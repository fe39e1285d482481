//! Compares the selection of files with a naive version of HBase's rules, and with HBase's own
//! examples.

mod examples;
mod naive;

use proptest::prelude::*;

use super::*;
use crate::compaction::settings::WindowSettings;

/// Files with small sizes and times, so that all limits are reached.
fn file() -> impl Strategy<Value = FileFacts> {
    let times = (0..40_i64, 0..10_i64, 1..40_u64);
    (1..60_u64, 0..20_u64, times, any::<[bool; 3]>(), 0..12_u8).prop_map(
        |(bytes, entries, times, flags, rare)| {
            let (min_timestamp, length, modified_ms) = times;
            FileFacts {
                name: format!("{bytes:032x}"),
                bytes,
                entries,
                min_timestamp,
                max_timestamp: if entries == 0 { i64::MAX } else { min_timestamp + length },
                modified_ms,
                is_reference: rare == 0,
                is_major: flags[0],
                is_bulk_loaded: flags[1] && flags[2],
                exclude_from_minor: rare == 1,
            }
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let policy = prop_oneof![
        4 => Just(Policy::Exploring), 2 => Just(Policy::RatioBased), 1 => Just(Policy::Fifo), 3 => Just(Policy::DateTiered)
    ];
    let files = (2..5_usize, 3..12_usize, 2..14_usize);
    let bytes = (0..80_u64, prop_oneof![Just(i64::MAX as u64), 20..200_u64], 20..200_u64);
    let ratios = (prop_oneof![Just(1.2), 0.3..3.0], Just(5.0));
    let major = (prop_oneof![Just(0_i64), 1..60_i64], prop_oneof![Just(0.0), Just(0.5)]);
    let windows = (1..8_i64, 2..4_i64, 1..5_usize, 0..60_i64, 0..60_i64, any::<bool>());
    (policy, files, bytes, ratios, major, windows).prop_map(
        |(policy, files, bytes, ratios, major, windows)| Settings {
            policy,
            files_min: files.0,
            files_max: files.1,
            blocking_files: files.2,
            bytes_min: bytes.0,
            bytes_max: bytes.1,
            off_peak_bytes_max: bytes.2,
            ratio: ratios.0,
            off_peak_ratio: ratios.1,
            major_period_ms: major.0,
            major_jitter: major.1,
            windows: WindowSettings {
                base_ms: windows.0,
                per_tier: windows.1,
                incoming_files_min: windows.2,
                tier_age_max_ms: windows.3,
                file_age_max_ms: windows.4,
                single_output: windows.5,
            },
            ..Settings::default()
        },
    )
}

fn store() -> impl Strategy<Value = (Vec<FileFacts>, Vec<usize>)> {
    (prop::collection::vec(file(), 0..14), prop::collection::vec(0..14_usize, 0..3)).prop_map(
        |(files, taken)| {
            let mut taken: Vec<usize> = taken.into_iter().filter(|at| *at < files.len()).collect();
            taken.sort_unstable();
            taken.dedup();
            (files, taken)
        },
    )
}

fn request() -> impl Strategy<Value = SelectionRequest> {
    any::<[bool; 3]>().prop_map(|[by_user, major, off_peak]| SelectionRequest { by_user, major, off_peak })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn selections_equal_those_of_the_naive_rules(
        settings in settings(),
        (files, taken) in store(),
        request in request(),
        ttl_ms in prop::option::of(1..60_i64),
    ) {
        // A major compaction is never requested while another compaction runs.
        let request = SelectionRequest { major: request.major && taken.is_empty(), ..request };
        let time = SelectionTime { now_ms: 50, ttl_ms };
        let found = select(&settings, &files, &taken, request, time);
        let expected = naive::select(&settings, &files, &taken, request, time);
        prop_assert_eq!((&found.files, &found.boundaries), (&expected.0, &expected.1));
        prop_assert!(found.files.is_sorted() && found.files.iter().all(|at| !taken.contains(at)));
        prop_assert_eq!(found.is_all && settings.policy != Policy::Fifo,
            found.files.len() == files.len() && !files.is_empty() && settings.policy != Policy::Fifo);
        prop_assert!(!found.is_major || found.is_all);
    }

    #[test]
    fn major_compactions_are_due_by_the_naive_rules(
        settings in settings(),
        (files, _) in store(),
        ttl_ms in prop::option::of(1..60_i64),
    ) {
        let time = SelectionTime { now_ms: 50, ttl_ms };
        let settings = Settings { policy: Policy::Exploring, ..settings };
        prop_assert_eq!(is_major_due(&settings, &files, time), naive::is_major_due(&settings, &files, time));
    }
}
