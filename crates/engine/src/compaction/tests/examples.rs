//! Hand-written cases, one for each rule that a reader of HBase's reference guide expects.

use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};

use super::*;

fn files(sizes: &[u64]) -> Vec<FileFacts> {
    let file = |(at, bytes): (usize, &u64)| FileFacts {
        name: format!("{at}"),
        bytes: *bytes,
        entries: 1,
        min_timestamp: 1,
        max_timestamp: 1000 + at as i64,
        modified_ms: 1000,
        is_reference: false,
        is_major: false,
        is_bulk_loaded: false,
        exclude_from_minor: false,
    };
    sizes.iter().enumerate().map(file).collect()
}

/// The settings of the examples in HBase's reference guide: `min.size` 10, `max.size` 1000, three
/// to five files.
fn book_settings() -> Settings {
    Settings {
        files_min: 3,
        files_max: 5,
        bytes_min: 10,
        bytes_max: 1000,
        ratio: 1.0,
        major_period_ms: 0,
        ..Settings::default()
    }
}

fn chosen(settings: &Settings, files: &[FileFacts], request: SelectionRequest) -> Vec<usize> {
    select(settings, files, &[], request, SelectionTime { now_ms: 10_000, ttl_ms: None }).files
}

const SERVER: SelectionRequest = SelectionRequest { by_user: false, major: false, off_peak: false };

#[test]
fn ratio_selects_as_in_the_examples_of_the_book() {
    let settings = Settings { policy: Policy::RatioBased, ..book_settings() };
    assert_eq!(chosen(&settings, &files(&[100, 50, 23, 12, 12]), SERVER), [2, 3, 4]);
    assert_eq!(chosen(&settings, &files(&[100, 25, 12, 12]), SERVER), [] as [usize; 0]);
    assert_eq!(chosen(&settings, &files(&[7, 6, 5, 4, 3, 2, 1]), SERVER), [0, 1, 2, 3, 4]);
}

#[test]
fn exploring_takes_most_files_then_fewest_bytes() {
    let settings = book_settings();
    assert_eq!(chosen(&settings, &files(&[100, 50, 23, 12, 12]), SERVER), [2, 3, 4]);
    assert_eq!(chosen(&settings, &files(&[900, 5, 5, 5, 900, 4, 4, 4, 900]), SERVER), [5, 6, 7]);
    // In off-peak hours a larger file is included.
    let off_peak = Settings { off_peak_ratio: 5.0, ..settings };
    assert_eq!(
        chosen(&off_peak, &files(&[100, 50, 23, 12, 12]), SelectionRequest { off_peak: true, ..SERVER }),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn a_store_that_blocks_flushes_gets_a_selection() {
    let settings = Settings { blocking_files: 4, ..book_settings() };
    let large = files(&[1000, 500, 100, 20]);
    assert_eq!(chosen(&book_settings(), &large, SERVER), [] as [usize; 0]);
    assert_eq!(chosen(&settings, &large, SERVER), [1, 2, 3]);
}

#[test]
fn a_user_gets_all_files_and_the_server_at_most_the_limit() {
    let (settings, many) = (book_settings(), files(&[400; 7]));
    let major = SelectionRequest { by_user: true, major: true, off_peak: false };
    assert_eq!(chosen(&settings, &many, major), [0, 1, 2, 3, 4, 5, 6]);
    assert!(chosen(&settings, &many, SelectionRequest { by_user: false, ..major }).len() <= 5);
    let single = select(&settings, &files(&[1]), &[], major, SelectionTime { now_ms: 10_000, ttl_ms: None });
    assert!(single.is_major && single.is_all);
    let busy = select(&settings, &many, &[1], SERVER, SelectionTime { now_ms: 10_000, ttl_ms: None });
    assert!(busy.files.iter().all(|at| *at > 1), "a run begins after the files being compacted");
}

#[test]
fn a_minor_compaction_of_all_files_drops_deleted_cells_but_is_not_major() {
    let selection = select(
        &book_settings(),
        &files(&[1, 1, 1]),
        &[],
        SERVER,
        SelectionTime { now_ms: 10_000, ttl_ms: None },
    );
    assert!(selection.is_all && !selection.is_major);
}

#[test]
fn windows_grow_with_age() {
    let settings = WindowSettings { base_ms: 10, per_tier: 2, ..WindowSettings::default() };
    let windows =
        std::iter::successors(Some(windows::Window::incoming(&settings, 75)), |w| Some(w.earlier()));
    let starts: Vec<i64> = windows.take(6).map(windows::Window::start_ms).collect();
    assert_eq!(starts, [70, 60, 40, 0, -80, -160]);
}

#[test]
fn a_family_setting_overrides_its_table_and_the_table_the_site() {
    let mut family = FamilyDescriptor::new("f");
    let mut table = TableDescriptor::new(TableName::parse("t").unwrap());
    let site =
        SiteSettings { settings: Settings { files_min: 5, ..Settings::default() }, ..Default::default() };
    let of = |table: &TableDescriptor, family: &FamilyDescriptor| Settings::of(table, family, &site, 1 << 20);
    assert_eq!(of(&table, &family).files_min, 5);
    assert_eq!((of(&table, &family).bytes_min, of(&table, &family).long_bytes), (1 << 20, 20 << 20));
    table.attributes.insert("hbase.hstore.compaction.min".into(), "7".into());
    assert_eq!(of(&table, &family).files_min, 7);
    family.configuration.insert("hbase.hstore.compactionThreshold".into(), "9".into());
    assert_eq!(of(&table, &family).files_min, 7, "the newer key takes precedence over the older one");
    family.configuration.insert("hbase.hstore.compaction.min".into(), "1".into());
    assert_eq!(of(&table, &family).files_min, 2, "a compaction takes at least two files");
    let engine = "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine";
    family.configuration.insert(Policy::ENGINE_KEY.into(), engine.into());
    assert_eq!(of(&table, &family).policy, Policy::DateTiered);
    family.configuration.insert(Policy::ENGINE_KEY.into(), "no.such.Engine".into());
    assert_eq!(of(&table, &family).policy, Policy::Exploring);
}

#[test]
fn off_peak_hours_may_span_midnight() {
    let settings = Settings { off_peak_hours: Some((22, 4)), ..Settings::default() };
    let is_off_peak = |hour: u64| settings.is_off_peak(hour * 3_600_000 + 5);
    assert_eq!((0..24).filter(|hour| is_off_peak(*hour)).collect::<Vec<_>>(), [0, 1, 2, 3, 22, 23]);
    assert!(!Settings::default().is_off_peak(0));
}
