//! Volumes of the storage tiers, as a server reports them: problems, and the message to the master.

use proto::grampus_volume;
use tiers::{Health, TierStatus, VolumeStatus};

/// A problem of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFinding {
    /// Whether files of the volume cannot be read.
    pub is_severe: bool,
    /// A sentence with the consequence.
    pub text: String,
}

/// The problems of the volumes of a tier.
pub fn findings(tier: &TierStatus) -> Vec<VolumeFinding> {
    tier.volumes.iter().filter_map(|volume| finding(tier, volume)).collect()
}

fn finding(tier: &TierStatus, volume: &VolumeStatus) -> Option<VolumeFinding> {
    let named = format!("The volume {} of the tier {}", volume.directory, tier.name);
    let (is_severe, text) = match &volume.health {
        Health::Good => return None,
        Health::Full => (false, format!("{named} is full: new files go to other volumes.")),
        Health::Stuck => {
            (true, format!("{named} does not respond: it gets no new files, and reads of its files wait."))
        }
        Health::Failed(reason) => (
            true,
            format!(
                "{named} failed ({reason}). It gets no new files, and reads of its files may fail. Check its disk, \
                 then restart the server."
            ),
        ),
    };
    Some(VolumeFinding { is_severe, text })
}

/// The volumes of a tier, for the master.
pub(crate) fn to_proto(tier: &TierStatus) -> Vec<proto::GrampusVolume> {
    tier.volumes.iter().map(|volume| volume_to_proto(tier, volume)).collect()
}

fn volume_to_proto(tier: &TierStatus, volume: &VolumeStatus) -> proto::GrampusVolume {
    let (health, failure) = match &volume.health {
        Health::Good => (grampus_volume::Health::Good, None),
        Health::Full => (grampus_volume::Health::Full, None),
        Health::Stuck => (grampus_volume::Health::Stuck, None),
        Health::Failed(reason) => (grampus_volume::Health::Failed, Some(reason.clone())),
    };
    let (load, traffic) = (&volume.load, volume.load.total());
    let is_measured = traffic.reads + traffic.writes > 0;
    proto::GrampusVolume {
        tier: tier.name.to_string(),
        tier_class: tier.class.to_string(),
        directory: volume.directory.to_string(),
        health: health.into(),
        failure,
        total_bytes: volume.space.map(|space| space.total_bytes),
        free_bytes: volume.space.map(|space| space.free_bytes),
        waiting_requests: Some(load.waiting_requests as u64),
        waiting_bytes: Some(load.waiting_bytes),
        served_requests: Some(load.served_requests as u64),
        served_bytes: Some(load.served_bytes),
        bytes_per_second: is_measured.then_some(load.bytes_per_s as u64),
        latency_us: is_measured.then(|| u64::try_from(load.latency.as_micros()).unwrap_or(u64::MAX)),
        errors: Some(load.errors),
        reads: Some(traffic.reads),
        read_bytes: Some(traffic.read_bytes),
        writes: Some(traffic.writes),
        written_bytes: Some(traffic.written_bytes),
        moved_in_bytes: Some(volume.moved_in_bytes),
        moved_out_bytes: Some(volume.moved_out_bytes),
        bus_bytes_per_second: tier.bus.map(|bus| bus.bytes_per_s),
        bus_used_percent: tier.bus.map(|bus| (bus.used_share * 100.0).round() as u32),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fs::{DiskSpace, Traffic};
    use tiers::VolumeLoad;

    use super::*;

    fn tier(health: Health) -> TierStatus {
        let mut load = VolumeLoad { latency: Duration::from_millis(3), errors: 2, ..VolumeLoad::default() };
        load.traffic[0] = Traffic { writes: 1, written_bytes: 10, ..Traffic::default() };
        load.traffic[2] = Traffic { writes: 2, written_bytes: 30, ..Traffic::default() };
        let volume = VolumeStatus {
            directory: "/nvme0".into(),
            health,
            space: Some(DiskSpace { total_bytes: 100, free_bytes: 25 }),
            load,
            moved_in_bytes: 5,
            moved_out_bytes: 6,
        };
        let bus = Some(tiers::BusStatus { bytes_per_s: 1_536_000_000, used_share: 0.956 });
        TierStatus { name: "fast".into(), class: "nvme".into(), bus, volumes: vec![volume] }
    }

    #[test]
    fn problems_name_the_volume_and_the_consequence() {
        assert_eq!(findings(&tier(Health::Good)), []);
        for (health, is_severe, part) in [
            (Health::Full, false, "is full"),
            (Health::Stuck, true, "does not respond"),
            (Health::Failed("sync: EIO".into()), true, "failed (sync: EIO)."),
        ] {
            let found = findings(&tier(health));
            assert_eq!((found.len(), found[0].is_severe), (1, is_severe));
            let text = &found[0].text;
            assert!(text.starts_with("The volume /nvme0 of the tier fast ") && text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_master_gets_all_measurements() {
        let message = to_proto(&tier(Health::Failed("EIO".into()))).remove(0);
        assert_eq!((message.health(), message.failure()), (grampus_volume::Health::Failed, "EIO"));
        assert_eq!((message.total_bytes(), message.free_bytes()), (100, 25));
        assert_eq!((message.latency_us(), message.errors()), (3000, 2));
        assert_eq!((message.writes(), message.written_bytes(), message.reads()), (3, 40, 0));
        assert_eq!((message.moved_in_bytes(), message.moved_out_bytes()), (5, 6));
        assert_eq!((message.bus_bytes_per_second(), message.bus_used_percent()), (1_536_000_000, 96));
    }
}
