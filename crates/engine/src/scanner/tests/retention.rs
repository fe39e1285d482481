//! Tests which cells a scan returns, and which cells a flush or a compaction retains.

use super::*;

/// A family that retains `count` versions.
fn versions(count: u32) -> FamilyDescriptor {
    FamilyDescriptor::new("f").with("VERSIONS", &count.to_string())
}

/// Checks the result of a scan with the program's cells in memory, in one file, and in one file per
/// cell.
fn check_scan(family: FamilyDescriptor, scan: &Scan, program: &str, expected: &str) {
    for spread in [program.to_string(), format!("{program}  flush"), program.replace("  ", "  flush  ")] {
        for encoding in [BlockEncoding::None, BlockEncoding::FastDiff] {
            let mut region = TestRegion::new(vec![family.clone()]);
            region.kind.encoding = encoding;
            region.run(&spread);
            assert_eq!(formatted_all(&region.scan(scan).cells), expected, "{spread}");
        }
    }
}

/// Checks the result of a scan of all versions, of a family that retains five.
fn check(program: &str, expected: &str) {
    check_scan(versions(5), &all_versions(), program, expected);
}

#[test]
fn a_delete_hides_the_put_at_its_own_timestamp() {
    check("put r/f:q@5=a  delete r/f:q@5", "");
    check("put r/f:q@6=b  delete r/f:q@5", "r/f:q@6=b");
    check("put r/f:q@6=b  put r/f:q@5=a  put r/f:q@4=z  delete r/f:q@5", "r/f:q@6=b  r/f:q@4=z");
}

#[test]
fn a_delete_hides_by_timestamp_whatever_was_written_first() {
    check("delete r/f:q@5  put r/f:q@5=a", "");
    check("delete-column r/f:q@5  put r/f:q@4=a  put r/f:q@6=b", "r/f:q@6=b");
    check("delete-family r/f@5  put r/f:q@4=a", "");
}

#[test]
fn column_markers_hide_their_column_up_to_their_timestamp() {
    check("put r/f:p@3=a  put r/f:q@3=b  put r/f:q@2=c  delete-column r/f:q@3", "r/f:p@3=a");
    check("put r/f:q@3=b  put r/f:q@2=c  delete-column r/f:q@2  delete r/f:q@3", "");
    check("put r/f:q@9=b  put r/f:q@2=c  delete-column r/f:q@5  delete r/f:q@2", "r/f:q@9=b");
}

#[test]
fn family_markers_hide_all_columns_also_after_puts_at_the_empty_qualifier() {
    check("put r/f:p@3=a  put r/f:q@4=b  delete-family r/f@3", "r/f:q@4=b");
    check("put r/f@9=e  put r/f:p@3=a  delete-family r/f@3", "r/f@9=e");
    check("put r/f:p@3=a  put r/f:q@4=b  put r/f:q@3=c  delete-family-version r/f@3", "r/f:q@4=b");
    check(
        "delete-family-version r/f@3  delete-family-version r/f@5  put r/f:q@5=a  put r/f:q@4=b",
        "r/f:q@4=b",
    );
    // If single columns are wanted, the markers before them still count.
    let wanted = only(Scan::default(), "f", &["p"]);
    check_scan(versions(5), &wanted, "put r/f@9=e  put r/f:p@3=a  delete-family r/f@3", "");
    check_scan(versions(1), &wanted, "put r/f@9=e  put r/f@8=d  put r/f:p@3=a  delete-family r/f@3", "");
}

#[test]
fn markers_of_one_row_or_family_do_not_hide_others() {
    check("delete-family r/f@9  put s/f:q@1=a", "s/f:q@1=a");
    let families = ["f", "g"].map(FamilyDescriptor::new).to_vec();
    let mut region = TestRegion::new(families);
    region.run("put r/f:q@1=a  put r/g:q@1=b  delete-family r/f@9  flush");
    assert_eq!(formatted_all(&region.scan(&Scan::default()).cells), "r/g:q@1=b");
}

#[test]
fn at_most_the_requested_and_retained_versions_are_returned() {
    let program = "put r/f:q@1=a  put r/f:q@2=b  put r/f:q@3=c  put r/f:s@1=d";
    check_scan(versions(5), &Scan::default(), program, "r/f:q@3=c  r/f:s@1=d");
    check_scan(versions(2), &all_versions(), program, "r/f:q@3=c  r/f:q@2=b  r/f:s@1=d");
    check_scan(versions(2), &only(all_versions(), "f", &["q"]), program, "r/f:q@3=c  r/f:q@2=b");
    check_scan(versions(5), &only(all_versions(), "f", &["a", "s", "z"]), program, "r/f:s@1=d");
}

#[test]
fn among_equal_timestamps_the_last_write_wins() {
    check("put r/f:q@5=a  put r/f:q@5=b  put r/f:q@4=c", "r/f:q@5=b  r/f:q@4=c");
    check_scan(
        versions(2),
        &only(all_versions(), "f", &["q"]),
        "put r/f:q@5=a  put r/f:q@5=b  put r/f:q@4=c",
        "r/f:q@5=b  r/f:q@4=c",
    );
}

#[test]
fn among_equal_keys_the_greater_sequence_id_wins_then_the_newer_file() {
    for (older_seq_id, newer_seq_id, expected) in
        [(9, 3, "r/f:q@5=old"), (3, 9, "r/f:q@5=new"), (0, 0, "r/f:q@5=new")]
    {
        let mut region = TestRegion::new(vec![versions(5)]);
        region.last_seq_id = 9;
        let older = region.file(&[(parse("put r/f:q@5=old"), older_seq_id)]);
        let newer = region.file(&[(parse("put r/f:q@5=new"), newer_seq_id)]);
        region.stores[0].view.files = vec![older, newer].into();
        assert_eq!(formatted_all(&region.scan(&all_versions()).cells), expected);
    }
}

#[test]
fn a_time_range_includes_its_start_and_excludes_its_end() {
    let program = "put r/f:q@1=a  put r/f:q@2=b  put r/f:q@3=c";
    check_scan(versions(5), &between(all_versions(), 1, 3), program, "r/f:q@2=b  r/f:q@1=a");
    // Versions are counted within the range.
    check_scan(versions(5), &between(Scan::default(), 1, 3), program, "r/f:q@2=b");
    let mut own = between(all_versions(), 3, 9);
    own.selection.family_time_ranges.push((Bytes::from("f"), TimeRange { from: 0, to: 2 }));
    check_scan(versions(5), &own, program, "r/f:q@1=a");
}

#[test]
fn a_marker_after_the_time_range_hides_cells_in_it_unless_deleted_cells_are_kept() {
    let program = "put r/f:q@1=a  put r/f:q@3=b  delete-column r/f:q@3";
    let past = between(all_versions(), 0, 2);
    check_scan(versions(5), &past, program, "");
    check_scan(versions(5).with("KEEP_DELETED_CELLS", "TRUE"), &past, program, "r/f:q@1=a");
    check_scan(versions(5).with("KEEP_DELETED_CELLS", "TRUE"), &all_versions(), program, "");
}

#[test]
fn expired_cells_are_hidden_except_for_the_minimum_versions() {
    let program = "put r/f:q@1=a  put r/f:q@2=b  put r/f:q@7=c  put r/f:s@4=d";
    for (min_versions, expected) in [("0", "r/f:q@7=c"), ("2", "r/f:q@7=c  r/f:q@2=b  r/f:s@4=d")] {
        for spread in [program.to_string(), format!("{program}  flush"), program.replace("  ", "  flush  ")] {
            let family = versions(5).with("TTL", "1").with("MIN_VERSIONS", min_versions);
            let mut region = TestRegion::new(vec![family]);
            // As an attribute of a family, it is in seconds.
            region.stores[0].rules.ttl_ms = Some(NOW_MS - 5);
            region.run(&spread);
            assert_eq!(formatted_all(&region.scan(&all_versions()).cells), expected, "{spread}");
        }
    }
}

#[test]
fn cells_that_no_client_can_decode_hide_nothing_and_are_retained() {
    let program = "put r/f:q@-5=a  put r/f:q@3=c  put r/f:q@2=b  delete-family r/f@-1  delete-column r/f:q@-2  put s/f:q@-1=d";
    check(program, "r/f:q@3=c  r/f:q@2=b");
    check_scan(versions(1), &all_versions(), program, "r/f:q@3=c");
    let raw = Scan { raw: true, ..all_versions() };
    check_scan(versions(5), &raw, program, "r/f:q@3=c  r/f:q@2=b");
}

#[test]
fn a_cells_own_ttl_only_shortens_its_life() {
    check("put r/f:q@5=a ttl=994  put r/f:q@4=b ttl=996", "r/f:q@4=b");
    check_scan(
        versions(1),
        &Scan::default(),
        "put r/f:q@5=a ttl=1  put r/f:q@4=b",
        // Expired cells are not counted as versions.
        "r/f:q@4=b",
    );
}

#[test]
fn a_raw_scan_returns_markers_and_hidden_cells() {
    let raw = Scan { raw: true, ..all_versions() };
    check_scan(
        versions(1),
        &raw,
        "put r/f:q@5=a  put r/f:q@4=b  delete r/f:q@5  delete-column r/f:q@4  delete-family r/f@5",
        "delete-family r/f@5  delete r/f:q@5  r/f:q@5=a  delete-column r/f:q@4  r/f:q@4=b",
    );
    let columns = only(Scan { raw: true, ..Scan::default() }, "f", &["q"]);
    let region = TestRegion::new(vec![versions(1)]);
    let stores = region.stores.iter().map(|store| (&store.rules, &store.view));
    let guard = Mvcc::new(0).register_reader(None);
    let refused = RegionScanner::new(stores, &columns, region.scanner_parts(guard));
    assert!(matches!(refused, Err(crate::Error::BadRequest { .. })));
}

#[test]
fn writes_and_markers_after_the_read_point_are_invisible() {
    let program = "put r/f:q@5=a  put r/f:q@6=b  delete-column r/f:q@9";
    let at = |read_point| Scan { read_point: Some(read_point), ..all_versions() };
    check_scan(versions(5), &at(0), program, "");
    check_scan(versions(5), &at(1), program, "r/f:q@5=a");
    check_scan(versions(5), &at(2), program, "r/f:q@6=b  r/f:q@5=a");
    check_scan(versions(5), &at(3), program, "");
}

/// Checks the cells that a compaction of files with one cell each retains, with readers from
/// `read_point` on.
fn check_retained(
    family: FamilyDescriptor,
    retention: Retention,
    read_point: u64,
    program: &str,
    expected: &str,
) {
    let mut region = TestRegion::new(vec![family]);
    region.run(&program.replace("  ", "  flush  "));
    region.flush(0);
    let files = region.stores[0].view.files.clone();
    assert_eq!(
        formatted_all(&region.compacted(0, &[], &files, retention, read_point)),
        expected,
        "{program}"
    );
}

#[test]
fn a_minor_compaction_keeps_markers_and_drops_hidden_cells() {
    check_retained(
        versions(5),
        Retention::Minor,
        9,
        "put r/f:p@3=a  put r/f:q@3=b  delete-column r/f:q@3  delete r/f:p@2",
        "r/f:p@3=a  delete r/f:p@2  delete-column r/f:q@3",
    );
}

#[test]
fn a_major_compaction_drops_markers_too() {
    let program = "put r/f:p@3=a  put r/f:q@3=b  delete-column r/f:q@3  delete-family r/f@1";
    check_retained(versions(5), Retention::Major, 9, program, "r/f:p@3=a");
    check_retained(versions(5), Retention::Major, 9, "delete-family r/f@1", "");
}

#[test]
fn cells_that_a_reader_may_see_are_retained() {
    let program = "put r/f:q@3=a  put r/f:q@4=b  delete-column r/f:q@9";
    // A reader at 2 does not see the marker. It hides nothing yet, and is retained.
    check_retained(versions(5), Retention::Major, 2, program, "delete-column r/f:q@9  r/f:q@4=b  r/f:q@3=a");
    // A reader at 1 sees only the first put. The second put must not displace it.
    check_retained(versions(1), Retention::Major, 1, "put r/f:q@3=a  put r/f:q@4=b", "r/f:q@4=b  r/f:q@3=a");
    check_retained(versions(1), Retention::Major, 2, "put r/f:q@3=a  put r/f:q@4=b", "r/f:q@4=b");
}

#[test]
fn kept_deleted_cells_are_dropped_by_versions() {
    let keep = |count| versions(count).with("KEEP_DELETED_CELLS", "TRUE");
    let program = "put r/f:q@3=a  delete-column r/f:q@4  put r/f:q@5=b";
    check_retained(keep(5), Retention::Major, 9, program, "r/f:q@5=b  delete-column r/f:q@4  r/f:q@3=a");
    check_retained(keep(1), Retention::Major, 9, program, "r/f:q@5=b  delete-column r/f:q@4");
    // No put is older than the marker, so it can hide nothing.
    check_retained(keep(5), Retention::Major, 9, "delete-column r/f:q@4  put r/f:q@5=b", "r/f:q@5=b");
}

#[test]
fn markers_younger_than_the_purge_delay_survive_a_major_compaction() {
    let mut region = TestRegion::new(vec![versions(5)]);
    region.stores[0].rules.purge_deletes_after_ms = 100;
    region.run("put r/f:q@3=a  delete-column r/f:q@4  put s/f:q@3=a  delete-column s/f:q@950  flush");
    let files = region.stores[0].view.files.clone();
    let kept = region.compacted(0, &[], &files, Retention::Major, 9);
    assert_eq!(formatted_all(&kept), "delete-column s/f:q@950");
}

#[test]
fn a_flush_drops_cells_that_its_own_cells_hide() {
    let mut region = TestRegion::new(vec![versions(2)]);
    region.run("put r/f:q@1=a  put r/f:q@2=b  put r/f:q@3=c  put r/f:p@1=d  delete r/f:p@1");
    let memstore = region.stores[0].view.active.clone();
    let kept = region.compacted(0, &[memstore], &[], Retention::Minor, 9);
    assert_eq!(formatted_all(&kept), "delete r/f:p@1  r/f:q@3=c  r/f:q@2=b");
}
