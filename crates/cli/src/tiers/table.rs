//! The volumes as a table: a line for each, and the sum of each tier with several volumes.

use proto::GrampusVolume;
use proto::grampus_volume::Health;

/// The text for a server without tiers.
const NO_TIERS: &str = "no storage tiers are configured (option grampus.tiers)";

/// The text for a value that is unknown or has no sum.
const NO_VALUE: &str = "-";

/// From this use, the bus limits the tier (`tiers::BusStatus`).
const BUS_REACHED_PERCENT: u32 = 90;

/// Columns that are aligned left; the others are numbers.
const TEXT_COLUMNS: usize = 4;
const HEALTH_COLUMN: usize = 3;

const HEADER: [&str; 15] = [
    "TIER", "CLASS", "VOLUME", "HEALTH", "USED", "SIZE", "FREE", "QUEUE", "QUEUED", "LATENCY", "SPEED",
    "READ", "WRITTEN", "MOVED", "ERRORS",
];

/// A line: its cells, and the health for its colour.
struct Line {
    cells: Vec<String>,
    health: Health,
}

/// The table, line by line, and the reasons of failures. `is_coloured`: with the escape sequences
/// of a terminal.
pub(crate) fn lines(volumes: &[GrampusVolume], is_coloured: bool) -> Vec<String> {
    if volumes.is_empty() {
        return vec![NO_TIERS.to_owned()];
    }
    let mut table = Vec::new();
    for tier in volumes.chunk_by(|one, next| one.tier == next.tier) {
        table.extend(tier.iter().map(|volume| line(volume, &volume.directory, health_text(volume))));
        if tier.len() > 1 {
            table.push(line(&sum(tier), "(total)", NO_VALUE));
        }
    }
    let widths: Vec<usize> = (0..HEADER.len())
        .map(|at| table.iter().map(|line| line.cells[at].chars().count()).fold(HEADER[at].len(), usize::max))
        .collect();
    let header = HEADER.map(str::to_owned);
    let mut lines = vec![aligned(&header, &widths, None)];
    let colour = |line: &Line| if is_coloured { colour(line.health) } else { None };
    lines.extend(table.iter().map(|line| aligned(&line.cells, &widths, colour(line))));
    let failed = volumes.iter().filter_map(|volume| Some((volume, volume.failure.as_ref()?)));
    lines.extend(failed.map(|(volume, reason)| format!("{}: {reason}", volume.directory)));
    let tiers = volumes.chunk_by(|one, next| one.tier == next.tier);
    lines.extend(tiers.filter_map(|tier| bus_text(&tier[0])));
    lines
}

/// The limit of what the volumes of the tier of `volume` transfer together, if it is known.
fn bus_text(volume: &GrampusVolume) -> Option<String> {
    let (rate, used) = (volume.bus_bytes_per_second? as f64 / 1e6, volume.bus_used_percent());
    let reached = if used >= BUS_REACHED_PERCENT { ", at its limit" } else { "" };
    Some(format!("{}: the bus of all volumes transfers {rate:.0} MB/s, {used}% in use{reached}", volume.tier))
}

fn health_text(volume: &GrampusVolume) -> &'static str {
    match volume.health() {
        Health::Good => "good",
        Health::Full => "full",
        Health::Stuck => "stuck",
        Health::Failed => "failed",
    }
}

fn colour(health: Health) -> Option<&'static str> {
    match health {
        Health::Good => None,
        Health::Full => Some("\x1b[33m"),
        Health::Stuck | Health::Failed => Some("\x1b[31m"),
    }
}

fn line(volume: &GrampusVolume, name: &str, health: &str) -> Line {
    let size = |bytes: Option<u64>| bytes.map_or(NO_VALUE.to_owned(), bytes_text);
    let used = match (volume.total_bytes, volume.free_bytes) {
        (Some(total), Some(free)) if total > 0 => {
            format!("{:.0}%", 100.0 * total.saturating_sub(free) as f64 / total as f64)
        }
        _ => NO_VALUE.to_owned(),
    };
    let cells = vec![
        volume.tier.clone(),
        volume.tier_class.clone(),
        name.to_owned(),
        health.to_owned(),
        used,
        size(volume.total_bytes),
        size(volume.free_bytes),
        format!("{}+{}", volume.waiting_requests(), volume.served_requests()),
        bytes_text(volume.waiting_bytes() + volume.served_bytes()),
        volume.latency_us.map_or(NO_VALUE.to_owned(), |us| format!("{:.1} ms", us as f64 / 1000.0)),
        volume.bytes_per_second.map_or(NO_VALUE.to_owned(), |rate| format!("{}/s", bytes_text(rate))),
        bytes_text(volume.read_bytes()),
        bytes_text(volume.written_bytes()),
        format!("+{} -{}", bytes_text(volume.moved_in_bytes()), bytes_text(volume.moved_out_bytes())),
        volume.errors().to_string(),
    ];
    Line { cells, health: volume.health() }
}

/// The sum of the volumes of a tier. Latencies have none.
fn sum(tier: &[GrampusVolume]) -> GrampusVolume {
    let sum = |of: fn(&GrampusVolume) -> Option<u64>| Some(tier.iter().filter_map(of).sum());
    GrampusVolume {
        health: Health::Good.into(),
        directory: String::new(),
        failure: None,
        total_bytes: sum(|volume| volume.total_bytes),
        free_bytes: sum(|volume| volume.free_bytes),
        waiting_requests: sum(|volume| volume.waiting_requests),
        waiting_bytes: sum(|volume| volume.waiting_bytes),
        served_requests: sum(|volume| volume.served_requests),
        served_bytes: sum(|volume| volume.served_bytes),
        bytes_per_second: sum(|volume| volume.bytes_per_second),
        latency_us: None,
        errors: sum(|volume| volume.errors),
        reads: sum(|volume| volume.reads),
        read_bytes: sum(|volume| volume.read_bytes),
        writes: sum(|volume| volume.writes),
        written_bytes: sum(|volume| volume.written_bytes),
        moved_in_bytes: sum(|volume| volume.moved_in_bytes),
        moved_out_bytes: sum(|volume| volume.moved_out_bytes),
        ..tier[0].clone()
    }
}

/// Joins cells to a line. `colour` is that of the health.
fn aligned(cells: &[String], widths: &[usize], colour: Option<&str>) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(at, (cell, width))| {
        let text = match at < TEXT_COLUMNS {
            true => format!("{cell:width$}"),
            false => format!("{cell:>width$}"),
        };
        match colour.filter(|_| at == HEALTH_COLUMN) {
            Some(colour) => format!("{colour}{text}\x1b[0m"),
            None => text,
        }
    });
    padded.collect::<Vec<_>>().join("  ")
}

/// Bytes with a binary unit: `1.5 GiB`.
fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut at) = (bytes as f64, 0);
    // A number that would round to 1024 belongs to the next unit.
    while value >= 1023.5 && at + 1 < UNITS.len() {
        value /= 1024.0;
        at += 1;
    }
    let decimals = usize::from(at > 0 && value < 9.95);
    format!("{value:.decimals$} {}", UNITS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(tier: &str, directory: &str, health: Health, free_bytes: u64) -> GrampusVolume {
        GrampusVolume {
            tier: tier.into(),
            tier_class: "hdd".into(),
            directory: directory.into(),
            health: health.into(),
            failure: (health == Health::Failed).then(|| "EIO".to_owned()),
            total_bytes: Some(100 << 30),
            free_bytes: Some(free_bytes),
            waiting_requests: Some(3),
            served_requests: Some(2),
            latency_us: Some(4_200),
            errors: Some(1),
            moved_in_bytes: Some(1536),
            ..GrampusVolume::default()
        }
    }

    fn volumes() -> Vec<GrampusVolume> {
        vec![
            volume("fast", "/n0", Health::Good, 75 << 30),
            volume("slow", "/d0", Health::Full, 0),
            volume("slow", "/d1", Health::Failed, 50 << 30),
        ]
    }

    #[test]
    fn each_volume_has_a_line_and_several_a_sum() {
        let shown = lines(&volumes(), false);
        let words: Vec<Vec<&str>> = shown
            .iter()
            .map(|line| line.split("  ").filter(|word| !word.trim().is_empty()).map(str::trim).collect())
            .collect();
        assert_eq!(words[0], HEADER);
        assert_eq!(words[1][..8], ["fast", "hdd", "/n0", "good", "25%", "100 GiB", "75 GiB", "3+2"]);
        assert_eq!(words[2][2..7], ["/d0", "full", "100%", "100 GiB", "0 B"]);
        assert_eq!(words[3][9..], ["4.2 ms", "-", "0 B", "0 B", "+1.5 KiB -0 B", "1"]);
        let total = ["slow", "hdd", "(total)", "-", "75%", "200 GiB", "50 GiB", "6+4", "0 B", "-"];
        assert_eq!(words[4][..10], total);
        assert_eq!(shown[5..], ["/d1: EIO"]);
        let lengths: Vec<usize> = shown[..5].iter().map(|line| line.chars().count()).collect();
        assert!(lengths.iter().all(|len| *len == lengths[0]), "{lengths:?}");
    }

    #[test]
    fn the_limit_of_a_bus_follows_the_table() {
        let on_bus = |used| GrampusVolume {
            bus_bytes_per_second: Some(1_536_000_000),
            bus_used_percent: Some(used),
            ..volume("fast", "/n0", Health::Good, 75 << 30)
        };
        let text = "fast: the bus of all volumes transfers 1536 MB/s,";
        assert_eq!(lines(&[on_bus(40)], false)[2..], [format!("{text} 40% in use")]);
        assert_eq!(lines(&[on_bus(97)], false)[2..], [format!("{text} 97% in use, at its limit")]);
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        assert!(lines(&volumes(), false).iter().all(|line| !line.contains('\x1b')));
        let coloured = lines(&volumes(), true);
        assert!(!coloured[1].contains('\x1b'));
        assert!(coloured[2].contains("\x1b[33mfull") && coloured[3].contains("\x1b[31mfailed"));
    }

    #[test]
    fn a_server_without_tiers_has_a_message() {
        assert_eq!(lines(&[], true), [NO_TIERS]);
    }

    #[test]
    fn bytes_have_few_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (250 << 30, "250 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
    }
}
