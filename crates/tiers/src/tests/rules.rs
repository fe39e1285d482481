//! Tiers and their rules are configuration.

use fs::{Purpose, Role};

use crate::{Placement, StorageType, Tier, TierOptions, parse_classes, parse_tiers};

/// The name of the first tier that is tried for a file.
fn first_tier(options: &[TierOptions], purpose: &Purpose) -> String {
    let placement = Placement::new(options.iter().map(|tier| tier.rule.clone()).collect());
    let tier = |options: &TierOptions| Tier {
        name: options.name.clone(),
        class: options.class.clone(),
        bus: None,
        volumes: Vec::new(),
        missing: Vec::new(),
    };
    let tiers: Vec<_> = options.iter().map(tier).collect();
    tiers[placement.order(&tiers, purpose, 0)[0]].name.to_string()
}

#[test]
fn a_new_class_needs_only_configuration() {
    let classes = parse_classes("qlc type=ssd writers=2 direct=false").unwrap();
    let text =
        "fast nvme /a roles=log,flush; dense qlc /b roles=minor,major file.bytes.max=10GiB; disk hdd /c";
    let tiers = parse_tiers(text, &classes).unwrap();
    // The policies in the source code of HDFS name only the type, and both tiers have the same one.
    let types: Vec<_> = tiers.iter().map(|tier| tier.class.storage_type).collect();
    assert_eq!(types, [StorageType::Ssd, StorageType::Ssd, StorageType::Disk]);
    let of = |role| Purpose::of(role);
    let all_ssd = Purpose { policy: Some("ALL_SSD".into()), ..of(Role::MajorCompaction) };
    assert_eq!(first_tier(&tiers, &all_ssd), "fast");
    assert_eq!(first_tier(&tiers, &of(Role::MajorCompaction)), "dense");
    assert_eq!(first_tier(&tiers, &of(Role::Flush)), "fast");
    let large = Purpose { expected_bytes: 11 << 30, ..of(Role::MajorCompaction) };
    assert_eq!(first_tier(&tiers, &large), "disk");
    assert_eq!((tiers[1].class.writers_max, tiers[1].class.direct_io), (2, false));
}
