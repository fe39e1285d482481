//! The storage tiers on the page of a region server.

use base::history::Unit;
use regionserver::volumes::{self, VolumeFinding};
use tiers::{BusStatus, Health, TierStatus, VolumeStatus};
use web::section::{Column, Finding, Table};
use web::{Level, Value};

/// The volumes of all tiers; `None` if there are no tiers.
pub(super) fn table(tiers: &[TierStatus]) -> Option<Table> {
    let columns = vec![
        Column::text("Tier"),
        Column::text("Class"),
        Column::text("Volume"),
        Column::text("Health"),
        Column::text("Used"),
        Column::number("Free"),
        Column::number("Queue").titled("Requests that wait, and requests in service"),
        Column::number("Queued").titled("Bytes of these requests"),
        Column::number("Latency").titled("Average time of a request, including its wait"),
        Column::number("Speed").titled("Bytes per second while the disk is busy"),
        Column::number("Client reads"),
        Column::number("Read"),
        Column::number("Written"),
        Column::number("Moved in").titled("Bytes of files that were moved to the volume"),
        Column::number("Moved out").titled("Bytes of files that were moved to other volumes"),
        Column::number("Errors"),
    ];
    let rows = tiers.iter().flat_map(|tier| tier.volumes.iter().map(|volume| row(tier, volume)));
    let mut table = Table::new("Storage tiers", columns).with_rows(rows);
    let buses = tiers.iter().filter_map(|tier| Some(bus_note(tier, tier.bus?)));
    let note = "From the fastest tier to the slowest. Totals are since the start.".to_owned();
    table.note = Some(std::iter::once(note).chain(buses).collect::<Vec<_>>().join(" "));
    (!tiers.is_empty()).then_some(table)
}

fn bus_note(tier: &TierStatus, bus: BusStatus) -> String {
    let rate = bus.bytes_per_s as f64 / 1e6;
    let (name, used) = (&tier.name, bus.used_share * 100.0);
    match bus.is_reached() {
        true => format!(
            "The bus of the tier {name} is at its limit of {rate:.0} MB/s ({used:.0} % in use): more volumes would not \
             make the tier faster."
        ),
        false => format!("The bus of the tier {name} transfers {rate:.0} MB/s ({used:.0} % in use)."),
    }
}

fn row(tier: &TierStatus, volume: &VolumeStatus) -> Vec<Value> {
    let (load, all) = (&volume.load, volume.load.total());
    let fill = volume.space.map(|space| Value::used_share(volume.used_bytes(), space.total_bytes));
    vec![
        Value::text(&*tier.name),
        Value::text(&*tier.class),
        Value::text(&*volume.directory),
        health(&volume.health),
        fill.unwrap_or_else(Value::none),
        volume.space.map_or_else(Value::none, |space| Value::bytes(space.free_bytes)),
        Value::id(format!("{} + {}", load.waiting_requests, load.served_requests)),
        Value::bytes(load.waiting_bytes + load.served_bytes),
        Value::quantity(load.latency.as_secs_f64() * 1e6, Unit::Microseconds),
        Value::quantity(load.bytes_per_s, Unit::BytesPerSecond),
        Value::count(load.of(fs::IoClass::Read).reads),
        Value::bytes(all.read_bytes),
        Value::bytes(all.written_bytes),
        Value::bytes(volume.moved_in_bytes),
        Value::bytes(volume.moved_out_bytes),
        match load.errors {
            0 => Value::count(0),
            errors => Value::count(errors).with_level(Level::Warning),
        },
    ]
}

fn health(health: &Health) -> Value {
    match health {
        Health::Good => Value::text("good"),
        Health::Full => Value::text("full").with_level(Level::Warning),
        Health::Stuck => Value::text("stuck").with_level(Level::Bad),
        Health::Failed(reason) => Value::text("failed").titled(reason).with_level(Level::Bad),
    }
}

/// The problems of all volumes.
pub(super) fn findings(tiers: &[TierStatus]) -> Vec<Finding> {
    let all = tiers.iter().flat_map(volumes::findings);
    let shown = all.map(|VolumeFinding { is_severe, text }| match is_severe {
        true => Finding::bad(text),
        false => Finding::warning(text),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use fs::DiskSpace;
    use tiers::VolumeLoad;
    use web::section::Row;

    use super::*;

    fn tiers() -> Vec<TierStatus> {
        let volume = |directory: &str, health, free_bytes| VolumeStatus {
            directory: directory.into(),
            health,
            space: Some(DiskSpace { total_bytes: 100 << 30, free_bytes }),
            load: VolumeLoad { waiting_requests: 3, served_requests: 2, errors: 1, ..VolumeLoad::default() },
            moved_in_bytes: 7,
            moved_out_bytes: 0,
        };
        let failed = VolumeStatus { space: None, ..volume("/d1", Health::Failed("EIO".into()), 0) };
        vec![
            TierStatus {
                name: "fast".into(),
                class: "nvme".into(),
                bus: Some(BusStatus { bytes_per_s: 1_536_000_000, used_share: 0.97 }),
                volumes: vec![volume("/n0", Health::Good, 75 << 30)],
            },
            TierStatus {
                name: "slow".into(),
                class: "hdd".into(),
                bus: None,
                volumes: vec![volume("/d0", Health::Full, 0), failed],
            },
        ]
    }

    #[test]
    fn a_server_without_tiers_has_no_table() {
        assert!(table(&[]).is_none());
        assert_eq!(findings(&[]), []);
    }

    #[test]
    fn each_volume_has_a_row() {
        let table = table(&tiers()).unwrap();
        let texts: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| match row {
                Row::Values(values) => values.iter().map(Value::as_text).collect(),
                Row::Group(..) => panic!("the table has no groups"),
            })
            .collect();
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|row| row.len() == table.columns.len()));
        assert_eq!(texts[0][..7], ["fast", "nvme", "/n0", "good", "25 %", "75 GiB", "3 + 2"]);
        assert_eq!(texts[1][2..5], ["/d0", "full", "100 %"]);
        assert_eq!(texts[2][2..6], ["/d1", "failed", "–", "–"]);
    }

    #[test]
    fn the_limit_of_a_bus_is_named() {
        let note = |tiers: &[TierStatus]| table(tiers).unwrap().note.unwrap();
        let mut shown = tiers();
        assert!(note(&shown).contains("The bus of the tier fast is at its limit of 1536 MB/s (97 % in use)"));
        shown[0].bus = Some(BusStatus { used_share: 0.5, ..shown[0].bus.unwrap() });
        assert!(note(&shown).contains("The bus of the tier fast transfers 1536 MB/s (50 % in use)."));
        assert!(!note(&shown[1..]).contains("bus"));
    }

    #[test]
    fn full_volumes_are_warnings_and_failed_ones_are_worse() {
        let found = findings(&tiers());
        let levels: Vec<Level> = found.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Warning, Level::Bad]);
        assert!(found[1].text.contains("/d1") && found[1].text.contains("EIO"), "{}", found[1].text);
    }
}
